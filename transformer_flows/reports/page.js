// Shows one number of heads at a time. The JSON is read afresh each time, so nothing that the player writes into
// a figure is seen when the same figure is shown again; the eye's position is carried over for comparison.
(() => {
  const place = document.getElementById("tokens");
  const choice = document.getElementById("heads");
  const show = (index) => {
    const figure = JSON.parse(document.getElementById("tokens-" + index).textContent);
    const scene = place._fullLayout && place._fullLayout.scene;
    if (scene && scene._scene && figure.layout.scene) figure.layout.scene.camera = scene._scene.getCamera();
    figure.layout.height = Math.min(figure.layout.height, place.clientWidth + 90);  // keeps the sphere whole on a phone
    if (place.data) Plotly.purge(place);
    Plotly.newPlot(place, {
      data: figure.data, layout: figure.layout, frames: figure.frames,
      // a list of the buttons wanted, since some of the others send the data elsewhere
      config: { responsive: true, displaylogo: false, modeBarButtons: [[figure.layout.scene ? "resetCameraDefault3d" : "resetScale2d"]] },
    });
  };
  if (choice) choice.addEventListener("change", () => show(choice.value));
  show(choice ? choice.value : "0");
})();
