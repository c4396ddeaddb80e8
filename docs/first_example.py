"""The example of the README: run it to print its output and draw its picture."""

from pathlib import Path

import numpy as np

from errorband import GPRegressor
from errorband.cli.demonstrations import draw_band

rng = np.random.default_rng(0)
x = np.concatenate([rng.uniform(0, 4, 60), rng.uniform(6, 10, 60)])
y = np.sin(2 * x) + 0.3 * x + 0.2 * rng.normal(size=120)

model = GPRegressor().fit(x[:, None], y)
mean, std = model.predict([[2.0], [5.0]], return_std=True)
lower, upper = model.predict_interval([[2.0], [5.0]], level=0.95)

print(f"at x = 2: {mean[0]:.2f} ± {std[0]:.2f}, 95 % of targets in [{lower[0]:.2f}, {upper[0]:.2f}]")
print(f"at x = 5: {mean[1]:.2f} ± {std[1]:.2f}, 95 % of targets in [{lower[1]:.2f}, {upper[1]:.2f}]")
print(model.kernel_)
print(f"log evidence {model.log_evidence_:.2f}; {model.fit_result_.message}")

draw_band(model, Path(__file__).parent / "images" / "band.png")
