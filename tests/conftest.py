"""What holds for every test: Hypothesis draws the same examples in each run, however long."""

from hypothesis import settings

settings.register_profile(
    "same-every-time", derandomize=True, database=None, deadline=None, max_examples=50
)
settings.load_profile("same-every-time")
