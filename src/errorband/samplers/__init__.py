"""Markov chains, for densities given as functions: elliptical slices, NUTS, annealed importance sampling.

Nothing here knows of models. The transitions are BlackJAX's (``pip install "errorband[mcmc]"``), imported when used.
"""

from errorband.samplers.annealed import Annealed, anneal
from errorband.samplers.chains import Chains
from errorband.samplers.indicators import gibbs_indicators
from errorband.samplers.run import elliptical_slices, no_u_turns

__all__ = ["Annealed", "Chains", "anneal", "elliptical_slices", "gibbs_indicators", "no_u_turns"]
