"""What is measured along a solve: functions of (t, x, flow)."""

from ._observable import AbstractIntegral as AbstractIntegral, AbstractObservable as AbstractObservable
from .balance import Balance as Balance, EnergyBalance as EnergyBalance
from .clusters import ClusterCount as ClusterCount
from .energy import (
    Action as Action,
    Dissipation as Dissipation,
    Energy as Energy,
    EnergySlope as EnergySlope,
    LogEnergy as LogEnergy,
    Slope as Slope,
)
from .gap_energy import GapEnergy as GapEnergy, LogGapEnergy as LogGapEnergy
from .least_density import LeastDensity as LeastDensity
from .spread import (
    Diameter as Diameter,
    NematicOrder as NematicOrder,
    OrderParameter as OrderParameter,
    PairwiseCosine as PairwiseCosine,
)
from .stationarity import settling_time as settling_time
from .time_integral import TimeIntegral as TimeIntegral
