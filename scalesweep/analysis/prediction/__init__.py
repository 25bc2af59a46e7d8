"""What unmeasured rank counts will give: models, weights by rolling forecasts, intervals.

``forecast.predict`` is the entrance; docs/methods/prediction.md explains each part and its limits.
"""
