"""Results of runs that never were: numbers from a seed, and gaps where a test wants them."""

import numpy as np
import pandas as pd

from otprop.benchmark.records import COLUMNS

METHODS = ("LP", "LS", "LNP", "OTP", "SC", "1-NN", "Self-training")
DATASETS = ("iris", "wine", "heart", "wdbc", "wdbc-leaky")
PERCENTS = (15, 25, 35)


def results(
    *,
    protocols=("honest",),
    methods=METHODS,
    datasets=DATASETS,
    percents=PERCENTS,
    seeds=10,
    seed=0,
):
    """Return a table of results as `records.read` gives them, all of them ok, in a random order."""
    rng = np.random.default_rng(seed)
    rows = []
    for protocol in protocols:
        for place, method in enumerate(methods):
            for dataset in datasets:
                for percent in percents:
                    level = 0.6 + percent / 200 - 0.03 * place
                    rows += [
                        {
                            "protocol": protocol,
                            "method": method,
                            "dataset": dataset,
                            "percent": percent,
                            "seed": number,
                            "status": "ok",
                            "message": "",
                            "accuracy": level + 0.1 * rng.random(),
                            "nmi": level - 0.1 + 0.1 * rng.random(),
                            "ari": level - 0.2 + 0.1 * rng.random(),
                        }
                        for number in range(seeds)
                    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.iloc[rng.permutation(len(frame))].reset_index(drop=True)


def where(frame, **key):
    """Return which rows have these values."""
    chosen = np.ones(len(frame), bool)
    for column, value in key.items():
        chosen &= (frame[column] == value).to_numpy()
    return chosen


def failing(frame, status, message="", **key):
    """Return the results with the chosen ones failed."""
    frame = frame.copy()
    rows = where(frame, **key)
    assert rows.any()
    frame.loc[rows, ["status", "message"]] = [status, message]
    frame.loc[rows, ["accuracy", "nmi", "ari"]] = np.nan
    return frame


def without(frame, **key):
    """Return the results without the chosen ones."""
    rows = where(frame, **key)
    assert rows.any()
    return frame[~rows].reset_index(drop=True)
