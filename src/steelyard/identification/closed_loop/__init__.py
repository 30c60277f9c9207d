"""The robot re-simulated inside the estimator: loops, pieces of motion, sensitivities and the fit of what comes out."""
