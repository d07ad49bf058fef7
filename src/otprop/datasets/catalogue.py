"""The data sets of the paper's Table 1.

A further data set is one more entry here, or one registered at run time; only a format that
`formats` does not read needs a function as well.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from otprop.datasets.fetch import OpenML, Originals
from otprop.datasets.formats import delimited, idx
from otprop.datasets.registry import Entry, register
from otprop.datasets.table import Table, by_value

if TYPE_CHECKING:
    from collections.abc import Mapping

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
_CC_BY = "CC BY 4.0"
_BLANKS = r"\s+"

# Copies kept for torchvision and for TensorFlow's examples; the files' own site refuses downloads.
_MNIST_COPIES = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_MNIST_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


def _uci(
    *files: str,
    columns: tuple[str, ...],
    openml: int | None = None,
    labels: Mapping[str, str | int] | None = None,
    rows: int | None = None,
    **layout: Any,  # noqa: ANN401 - what `delimited` takes
) -> tuple[Originals | OpenML, ...]:
    """Return UCI's files, and OpenML's copy of them where there is one with the same values."""
    urls = tuple(_UCI + file for file in files)
    read = partial(delimited, columns=columns, rows=rows, **layout)
    copies = () if openml is None else (OpenML(openml, columns, labels or {}, rows),)
    return (Originals(urls, read), *copies)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"x{i}" for i in range(count))


def _pixels(side: int) -> tuple[str, ...]:
    return tuple(f"pixel_{row}_{column}" for row in range(side) for column in range(side))


def _with_diagnosis(given: Table) -> Table:
    return Table(given.frame.assign(diagnosis=given.target == "M"), given.target)


def _test_images(given: Table) -> Table:
    return Table(given.frame.iloc[60_000:], given.target[60_000:])


_IRIS = _words("sepal length, sepal width, petal length, petal width")
_WINE = _words(
    "alcohol, malic acid, ash, alcalinity of ash, magnesium, total phenols, flavanoids, "
    "nonflavanoid phenols, proanthocyanins, color intensity, hue, od280/od315 of diluted wines, "
    "proline"
)
_HEART = _words(
    "age, sex, chest pain type, resting blood pressure, serum cholestoral, "
    "fasting blood sugar > 120 mg/dl, resting electrocardiographic results, "
    "maximum heart rate achieved, exercise induced angina, oldpeak, "
    "slope of the peak exercise st segment, number of major vessels, thal"
)
_DERMATOLOGY = _words(
    "erythema, scaling, definite borders, itching, koebner phenomenon, polygonal papules, "
    "follicular papules, oral mucosal involvement, knee and elbow involvement, "
    "scalp involvement, family history, melanin incontinence, eosinophils in the infiltrate, "
    "pnl infiltrate, fibrosis of the papillary dermis, exocytosis, acanthosis, hyperkeratosis, "
    "parakeratosis, clubbing of the rete ridges, elongation of the rete ridges, "
    "thinning of the suprapapillary epidermis, spongiform pustule, munro microabcess, "
    "focal hypergranulosis, disappearance of the granular layer, "
    "vacuolisation and damage of basal layer, spongiosis, saw-tooth appearance of retes, "
    "follicular horn plug, perifollicular parakeratosis, inflammatory monoluclear inflitrate, "
    "band-like infiltrate"
)
_MEASURES = _words(
    "radius, texture, perimeter, area, smoothness, compactness, concavity, concave points, "
    "symmetry, fractal dimension"
)
_WDBC = (
    *(f"mean {measure}" for measure in _MEASURES),
    *(f"{measure} error" for measure in _MEASURES),
    *(f"worst {measure}" for measure in _MEASURES),
)
_BANDS = tuple(f"pixel{pixel}_band{band}" for pixel in range(1, 10) for band in range(1, 5))

_BREAST = Entry(
    name="wdbc",
    title="Breast",
    file="wdbc.csv.gz",
    columns=_WDBC,
    counts={"B": 357, "M": 212},
    sha256="050f36b33792f88bbecf7c230c35d9050c2f89b2096072ba26022450ed012c93",
    sources=_uci(
        "breast-cancer-wisconsin/wdbc.data",
        columns=_WDBC,
        target=1,
        without=(0,),
        openml=1510,
        labels={"1": "B", "2": "M"},
    ),
    citation="Wolberg, W., Mangasarian, O., Street, N. & Street, W. (1993). Breast Cancer "
    "Wisconsin (Diagnostic) [Dataset]. UCI Machine Learning Repository.",
    doi="10.24432/C5DW2B",
    licence=_CC_BY,
    notes="B: benign, M: malignant. The patient's number (id), which is no feature, is left out.",
)

_MNIST = Entry(
    name="mnist",
    title="MNIST",
    file="mnist.npz",
    columns=_pixels(28),
    counts=dict(enumerate((980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009))),
    sha256="7517cc9dc3b60704fd34006831e45932a418a3e950c710137d110abd53c4e538",
    # Not OpenML: its ARFF file takes gigabytes of memory to read.
    sources=tuple(
        Originals(tuple(copy + file for file in _MNIST_FILES), partial(idx, columns=_pixels(28)))
        for copy in _MNIST_COPIES
    ),
    prepare=_test_images,
    citation="LeCun, Y., Cortes, C. & Burges, C. J. C. The MNIST database of handwritten digits. "
    "See LeCun, Y., Bottou, L., Bengio, Y. & Haffner, P. (1998). Gradient-based learning applied "
    "to document recognition. Proceedings of the IEEE 86(11), 2278-2324.",
    doi="10.1109/5.726791",
    licence="none came with the files; they are often passed on as CC BY-SA 3.0",
    notes="The 10,000 images for testing, 28 x 28 pixels row by row, 0 (background) to 255. "
    "'mnist-70000' has the images for training as well.",
)

for _entry in (
    Entry(
        name="iris",
        title="Iris",
        file="iris.csv.gz",
        columns=_IRIS,
        counts={"Iris-setosa": 50, "Iris-versicolor": 50, "Iris-virginica": 50},
        sha256="4167609219e064cae9c743b77abb4ca28f096124c9bf62d691ea705d7012882e",
        sources=_uci("iris/iris.data", columns=_IRIS, openml=61),
        citation="Fisher, R. (1936). Iris [Dataset]. UCI Machine Learning Repository.",
        doi="10.24432/C56C76",
        licence=_CC_BY,
        notes="UCI's values, which differ from Fisher's paper and from scikit-learn's copy in rows "
        "34 and 37, counted from 0.",
    ),
    Entry(
        name="wine",
        title="Wine",
        file="wine.csv.gz",
        columns=_WINE,
        counts={1: 59, 2: 71, 3: 48},
        sha256="5d3cc743b530d42ce2f575e27bbc99e842628dc9ba28ed2b3165c3b131fd7c8a",
        sources=_uci("wine/wine.data", columns=_WINE, target=0, openml=187),
        citation="Aeberhard, S. & Forina, M. (1992). Wine [Dataset]. UCI Machine Learning "
        "Repository.",
        doi="10.24432/C5PC7J",
        licence=_CC_BY,
    ),
    Entry(
        name="heart",
        title="Heart",
        file="heart.csv.gz",
        columns=_HEART,
        counts={1: 150, 2: 120},
        sha256="63efc63a1e0c26db1c2497d7f4665838522131a4a39b251c4d0e5bad035a75cc",
        sources=_uci(
            "statlog/heart/heart.dat",
            columns=_HEART,
            separator=_BLANKS,
            openml=53,
            labels={"absent": 1, "present": 2},
        ),
        citation="Statlog (Heart) [Dataset]. UCI Machine Learning Repository.",
        doi="10.24432/C57303",
        licence=_CC_BY,
        notes="Heart disease is absent (1) or present (2).",
    ),
    Entry(
        name="ionosphere",
        title="Ionosphere",
        file="ionosphere.csv.gz",
        columns=_numbered(34),
        counts={"b": 126, "g": 225},
        sha256="1dd661bc441dddb2ee73ffffa3d4bef13c0f4f960b7927418e05851dc6b60990",
        sources=_uci("ionosphere/ionosphere.data", columns=_numbered(34), openml=59),
        citation="Sigillito, V., Wing, S., Hutton, L. & Baker, K. (1989). Ionosphere [Dataset]. "
        "UCI Machine Learning Repository.",
        doi="10.24432/C5W01B",
        licence=_CC_BY,
        notes="Radar returns that are good (g) or bad (b). x1 is 0 in all rows.",
    ),
    Entry(
        name="dermatology",
        title="Dermatology",
        file="dermatology.csv.gz",
        columns=_DERMATOLOGY,
        counts={1: 112, 2: 61, 3: 72, 4: 49, 5: 52, 6: 20},
        sha256="60033f85fef11eb7ec94d17fba253f054fbd89b67f1f2c7754f65045b400ae15",
        sources=_uci(
            "dermatology/dermatology.data", columns=_DERMATOLOGY, without=(33,), openml=35
        ),
        citation="Ilter, N. & Guvenir, H. (1998). Dermatology [Dataset]. UCI Machine Learning "
        "Repository.",
        doi="10.24432/C5FK5P",
        licence=_CC_BY,
        notes="The age is left out: it is missing in 8 rows. 1: psoriasis, 2: seboreic dermatitis, "
        "3: lichen planus, 4: pityriasis rosea, 5: cronic dermatitis, 6: pityriasis rubra pilaris.",
    ),
    _BREAST,
    replace(
        _BREAST,
        name="wdbc-leaky",
        title="WDBC",
        columns=(*_WDBC, "diagnosis"),
        sha256="ac65e285ca97d783463c082018fd20ed1cdca35c56221176675c9ae1486c7f8b",
        prepare=_with_diagnosis,
        notes="THE LAST FEATURE IS THE LABEL: 'diagnosis' is 1 for malignant (M) and 0 for benign "
        "(B). This is how the paper's WDBC was read, and why its scores are near perfect; it says "
        "nothing about a method. 'wdbc' is the data set without that column.",
    ),
    Entry(
        name="isolet",
        title="Isolet",
        file="isolet.csv.gz",
        columns=_numbered(617),
        counts=dict.fromkeys(range(1, 27), 60),
        sha256="3d8fb50f5bff9add12b88c3ed8bcbc63cbf06abb8db489112deb02240b288e39",
        # The first speakers' 1,560 rows are subset 1.
        sources=_uci("isolet/isolet1+2+3+4.data.Z", columns=_numbered(617), rows=1560, openml=300),
        prepare=by_value,
        citation="Cole, R. & Fanty, M. (1991). ISOLET [Dataset]. UCI Machine Learning Repository.",
        doi="10.24432/C51G69",
        licence=_CC_BY,
        notes="Subset 1: 30 speakers say the letters A (1) to Z (26), twice each. Rows are sorted "
        "by letter and then by value, since copies in different orders are in use.",
    ),
    Entry(
        name="waveform",
        title="Waveform",
        file="waveform.csv.gz",
        columns=_numbered(21),
        counts={0: 1657, 1: 1647, 2: 1696},
        sha256="aac4af5d4b95de99d25065050fea2052a8e08c589dedb3bcf7ce1071c557ac6e",
        # OpenML's waveform-5000 is version 2: other waves, and 19 columns of noise.
        sources=_uci("waveform/waveform.data.Z", columns=_numbered(21)),
        citation="Breiman, L. & Stone, C. (1984). Waveform Database Generator (Version 1) "
        "[Dataset]. UCI Machine Learning Repository.",
        doi="10.24432/C5CS3C",
        licence=_CC_BY,
        notes="Version 1, without columns of noise.",
    ),
    Entry(
        name="optdigits",
        title="Digits",
        file="optdigits.csv.gz",
        columns=_pixels(8),
        counts=dict(enumerate((554, 571, 557, 572, 568, 558, 558, 566, 554, 562))),
        sha256="f3a5176fb7842ee757de53a0fa0675a50f5c54a9f7ad4f4b478e5265ab1796f5",
        sources=_uci(
            "optdigits/optdigits.tra", "optdigits/optdigits.tes", columns=_pixels(8), openml=28
        ),
        citation="Alpaydin, E. & Kaynak, C. (1998). Optical Recognition of Handwritten Digits "
        "[Dataset]. UCI Machine Learning Repository.",
        doi="10.24432/C50P49",
        licence=_CC_BY,
        notes="The 3,823 rows for training, then the 1,797 for testing. pixel_r_c is row r, column "
        "c of an image of 8 x 8 pixels, 0 to 16.",
    ),
    Entry(
        name="satimage",
        title="Statlog",
        file="satimage.csv.gz",
        columns=_BANDS,
        counts={1: 1533, 2: 703, 3: 1358, 4: 626, 5: 707, 7: 1508},
        sha256="86416752512d168a1aad1014e4118a5df4e2d220e367c87a996d52777a21ade6",
        # OpenML's satimage lacks five rows.
        sources=_uci(
            "statlog/satimage/sat.trn",
            "statlog/satimage/sat.tst",
            columns=_BANDS,
            separator=_BLANKS,
        ),
        citation="Srinivasan, A. (1993). Statlog (Landsat Satellite) [Dataset]. UCI Machine "
        "Learning Repository.",
        doi="10.24432/C55887",
        licence=_CC_BY,
        notes="The 4,435 rows for training, then the 2,000 for testing. 1: red soil, 2: cotton "
        "crop, 3: grey soil, 4: damp grey soil, 5: soil with vegetation stubble, 7: very damp grey "
        "soil; there is no 6. pixelP_bandB is band B of pixel P in a neighbourhood of 3 x 3, of "
        "which pixel 5 has the label.",
    ),
    _MNIST,
    replace(
        _MNIST,
        name="mnist-70000",
        title="MNIST (70,000)",
        counts=dict(enumerate((6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958))),
        sha256="90824e8a9b2a84814101826f8a8d1325973239bad564b1409802b065ac5adef0",
        prepare=None,
        dtype="float32",
        notes="The 60,000 images for training, then the 10,000 for testing ('mnist'), 28 x 28 "
        "pixels row by row, 0 (background) to 255. The features are of single precision, which "
        "holds them exactly and takes 220 MB.",
    ),
):
    register(_entry)
