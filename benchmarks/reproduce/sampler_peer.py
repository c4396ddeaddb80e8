"""GPflow's samplers at the problems of ``sampler_cost.py``: draws and processor time.

Run by an interpreter that has GPflow (``benchmarks/peers/gpflow.txt``); the page is made by ``sampler_cost.py``.
"""

import functools
import time
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from common import Results
from sampler_data import KERNEL, NOISE, PROBIT, SPREAD, data

WARMUP, DRAWS = 500, (500, 1500)


def positive(value: float) -> gpflow.Parameter:
    prior = tfp.distributions.Normal(np.log(np.float64(value)), np.float64(SPREAD))
    return gpflow.Parameter(value, transform=tfp.bijectors.Exp(), prior=prior, prior_on="unconstrained")


def model_of(problem: str) -> Any:
    X, y = data(problem)
    if problem == "hyperparameters":
        model = gpflow.models.GPR((X, y[:, None]), gpflow.kernels.SquaredExponential())
        model.kernel.lengthscales, model.kernel.variance = positive(KERNEL[0]), positive(KERNEL[1])
        model.likelihood.variance = positive(NOISE)
        return model
    kernel = gpflow.kernels.SquaredExponential(lengthscales=PROBIT[0], variance=PROBIT[1])
    model = gpflow.models.GPMC((X, (y[:, None] + 1) / 2), kernel, gpflow.likelihoods.Bernoulli())
    gpflow.set_trainable(model.kernel, False)
    return model


def sample(problem: str, sampler: str, draws: int) -> dict[str, Any]:
    """A chain as GPflow's guide makes it: its search first, then TensorFlow Probability's sampler."""
    tf.random.set_seed(0)
    began = time.process_time()
    model = model_of(problem)
    gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables, options={"maxiter": 200})
    helper = gpflow.optimizers.SamplingHelper(model.log_posterior_density, model.trainable_parameters)
    if sampler == "NUTS":
        inner = tfp.mcmc.NoUTurnSampler(helper.target_log_prob_fn, step_size=np.float64(0.1))
        kernel = tfp.mcmc.DualAveragingStepSizeAdaptation(
            inner, num_adaptation_steps=WARMUP * 4 // 5, target_accept_prob=np.float64(0.8)
        )
    else:  # ten leapfrog steps, as the guide has them
        inner = tfp.mcmc.HamiltonianMonteCarlo(helper.target_log_prob_fn, np.float64(0.01), num_leapfrog_steps=10)
        kernel = tfp.mcmc.SimpleStepSizeAdaptation(
            inner, num_adaptation_steps=WARMUP * 4 // 5, target_accept_prob=np.float64(0.75)
        )

    @tf.function(reduce_retracing=True)
    def run() -> Any:
        state = helper.current_state
        return tfp.mcmc.sample_chain(draws, state, kernel=kernel, num_burnin_steps=WARMUP, trace_fn=None)

    states = run()
    took = time.process_time() - began
    if problem == "hyperparameters":
        values = np.stack([np.asarray(s).reshape(draws) for s in states], axis=1)
    else:  # whitened values to those of the function
        K = model.kernel(model.data[0]).numpy() + gpflow.default_jitter() * np.eye(len(model.data[0]))
        values = np.asarray(states[0])[:, :, 0] @ np.linalg.cholesky(K).T
    return {"took": took, "draws": np.round(values, 5).tolist(), "version": gpflow.__version__}


def summary(problem: str, sampler: str) -> dict[str, Any]:
    short, whole = (sample(problem, sampler, draws) for draws in DRAWS)
    each = (whole["took"] - short["took"]) / (DRAWS[1] - DRAWS[0])  # compilation and warm-up cancel
    every = 1 if problem == "hyperparameters" else 10  # rows whose latent value is judged
    kept = np.array(whole["draws"])[:, ::every]
    return {"each": each, "took": whole["took"], "version": whole["version"], "chains": 1, "draws": kept.T.tolist()}


if __name__ == "__main__":
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    results = Results("sampler_cost")
    for problem in ("hyperparameters", "latent values"):
        for sampler in ("NUTS", "HMC"):
            results.once(f"{problem}: GPflow, {sampler}", functools.partial(summary, problem, sampler))
