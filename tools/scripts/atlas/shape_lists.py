"""The shapes of products that programs usually have, all of which are recorded one by one: layers by tokens, and attention."""
import math

import numpy as np

# Features of a layer, in and out.
COMMON_FEATURES = [2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 27, 28, 30, 32, 40, 48, 50, 56, 60, 64, 65, 72, 75, 80, 84, 88, 96, 100, 112, 120, 128, 144,
    147, 150, 160, 168, 172, 176, 180, 192, 196, 200, 224, 240, 250, 256, 288, 300, 320, 336, 341, 344, 352, 360, 384, 400, 416, 432, 448, 480, 500,
    512, 544, 560, 576, 600, 640, 672, 682, 688, 700, 704, 720, 750, 768, 784, 800, 832, 864, 896, 900, 960, 1000, 1024, 1088, 1120, 1152, 1200, 1280,
    1344, 1376, 1408, 1440, 1500, 1536, 1600, 1728, 1792, 1920, 2048, 2304, 2560, 2688, 2816, 3072, 3200, 3456, 3584, 4096]
RARE_FEATURES = [1, 7, 9, 11, 13, 14, 15, 18, 21, 22, 25, 26, 33, 35, 36, 37, 42, 44, 45, 49, 52, 54, 55, 63, 66, 68, 70, 76, 78, 81, 90, 92, 97, 98,
    99, 101, 104, 108, 110, 116, 124, 125, 127, 129, 130, 132, 136, 140, 145, 152, 156, 184, 204, 208, 216, 225, 248, 264, 272, 280, 304, 312, 376,
    392, 408, 450, 484, 504, 520, 528, 588, 608, 624, 625, 729, 760, 792, 816, 840, 880, 912, 972, 992, 1008, 1056, 1080, 1296, 1365, 1800, 2000,
    2400, 3000, 3840]
# Rows of a batch: tokens, or examples.
COMMON_TOKENS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 34, 36, 40,
    48, 49, 50, 51, 56, 60, 64, 65, 68, 72, 77, 80, 84, 85, 90, 96, 98, 100, 102, 108, 112, 120, 128, 130, 136, 140, 144, 147, 150, 154, 160, 168,
    170, 180, 192, 195, 196, 197, 200, 204, 216, 224, 231, 240, 245, 250, 256, 257, 260, 272, 280, 288, 294, 300, 308, 320, 325, 336, 340, 360, 384,
    385, 390, 392, 394, 400, 408, 432, 448, 462, 480, 490, 500, 512, 514, 520, 544, 560, 576, 588, 591, 600, 616, 640, 650, 672, 720, 768, 770, 771,
    780, 784, 788, 800, 816, 864, 896, 924, 960, 980, 985, 1000, 1024, 1028, 1040, 1088, 1152, 1176, 1182, 1200, 1232, 1280, 1285, 1300, 1344, 1440,
    1536, 1540, 1542, 1560, 1568, 1576, 1600, 1700, 1728, 1792, 1848, 1920, 1960, 1970, 2000, 2048, 2056, 2080, 2176, 2304, 2352, 2364, 2400, 2464,
    2560, 2570, 2800, 3000, 3072, 3084, 3120, 3136, 3152, 3200, 3584, 3600, 3696, 3840, 3920, 3940, 4000, 4096, 4112, 4160, 4352, 4608, 4704, 4728,
    4800, 4900, 4928, 5000, 5120, 5140, 6144, 6168, 6272, 6304, 6400, 6500, 7168, 7680, 7700, 8000, 8192, 8224, 8320, 9216, 9408, 9456, 9600, 9856,
    10000, 10240, 12288, 12336, 12544, 12608, 12800, 16384]
RARE_TOKENS = [33, 35, 37, 38, 39, 41, 42, 43, 44, 45, 46, 47, 52, 53, 54, 55, 57, 58, 59, 61, 62, 63, 66, 70, 75, 76, 78, 88, 92, 99, 104, 105, 110,
    124, 125, 126, 127, 132, 152, 156, 175, 176, 184, 189, 198, 208, 210, 220, 225, 248, 252, 254, 255, 258, 264, 270, 304, 310, 312, 315, 324, 330,
    350, 352, 368, 372, 396, 416, 420, 450, 496, 504, 508, 510, 516, 528, 540, 580, 608, 620, 624, 630, 648, 660, 700, 704, 736, 750, 756, 792, 832,
    840, 900, 992, 1008, 1016, 1020, 1032, 1056, 1080, 1120, 1160, 1216, 1248, 1250, 1260, 1270, 1296, 1372, 1400, 1408, 1472, 1500, 1524, 1584, 1664,
    1680, 1800, 1984, 2016, 2032, 2040, 2064, 2100, 2112, 2240, 2320, 2500, 2550, 2600, 2688, 2816, 2880, 3168, 3328, 3456, 3968, 4032, 4064, 4080,
    4128, 4224, 4480, 4500, 4640, 5100, 5376, 5600, 5760, 5880, 6000, 6912, 7200, 7500, 7840, 7936, 8064, 8128, 8160, 8448, 9000, 9800, 10752, 11520,
    12000, 13824, 14336, 14400, 15000, 15360, 15680, 16000, 16128, 16256, 16320]
FEATURES, TOKENS = sorted(COMMON_FEATURES + RARE_FEATURES), sorted(COMMON_TOKENS + RARE_TOKENS)
# Of attention: heads of all sequences, positions, features of a head.
COMMON_HEADS = [1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 16, 18, 20, 24, 30, 32, 36, 40, 48, 50, 54, 60, 64, 72, 80, 96, 100, 120, 128, 144, 160, 192, 200, 256, 320, 384,
    512, 768, 1024]
HEADS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 18, 20, 21, 24, 28, 30, 32, 36, 40, 48, 50, 54, 60, 64, 72, 80, 90, 96, 100, 112, 120, 128, 144, 160, 180, 192, 200, 240,
         256, 320, 384, 400, 480, 512, 640, 768, 1024]
POSITIONS = [*range(1, 41), 48, 49, 50, 60, 63, 64, 65, 77, 80, 96, 100, 120, 127, 128, 129, 144, 150, 160, 192, 196, 197, 200, 224, 250, 255,
             256, 257, 288, 300, 320, 384, 400, 500, 512]
COMMON_POSITIONS = [x for x in POSITIONS if x > 40 or x in (8, 10, 12, 16, 17, 20, 24, 30, 32, 36, 40)]
COMMON_HEAD_FEATURES = [8, 16, 20, 24, 32, 40, 48, 64, 72, 80, 96, 128]
HEAD_FEATURES = [4, 8, 10, 12, 16, 20, 24, 28, 32, 36, 40, 48, 56, 64, 72, 80, 96, 128]
# Every small number of rows, or of features such as a vocabulary's; layers beside the latter, and rows; features of flattened pictures.
SMALL_TOKENS = sorted(set(range(2, 1025)) - set(COMMON_TOKENS))
# In the order of what they divide by, as plans do.
SMALL_FEATURES = sorted(set(range(2, 1025)) - set(COMMON_FEATURES), key=lambda x: (math.gcd(x, 8), x))
MIDDLE_FEATURES = [2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 27, 32, 40, 48, 50, 64, 65, 72, 80, 84, 96, 100, 112, 120, 128, 144, 150, 160, 180, 192, 200, 224,
                   240, 256, 288, 300, 320, 336, 344, 360, 384, 400, 448, 480, 500, 512, 576, 600, 640, 672, 720, 768, 800, 896, 960, 1000, 1024, 1152,
                   1280, 1344, 1408, 1536, 1600, 1792, 1920, 2048, 2304, 2560, 3072, 4096]
LAYERS = [16, 32, 48, 64, 96, 100, 128, 160, 192, 200, 256, 320, 384, 512, 768, 1024]
ROWS = [x for x in COMMON_TOKENS if x <= 4096 and (x <= 16 or x % 4 == 0 and (x <= 128 or x % 16 == 0))]
FLAT_FEATURES = [484, 882, 972, 1176, 1250, 1296, 1350, 1568, 1764, 2028, 2450, 2500, 2700, 2704, 2916, 3042, 3136, 3380, 3388, 3600, 3872, 3920,
                 4000, 4056, 4225, 4320, 4500, 4608, 4704, 4732, 4800, 4840, 5000, 5120, 5184, 5292, 5400, 5408, 5632, 5760, 5776, 6000, 6144, 6272,
                 6400, 6760, 6912, 7168, 7200, 7680, 7744, 7840, 8000, 8100, 8192, 8464, 8712, 9216, 9248, 9600, 10000, 10240, 10368, 10816, 10976,
                 11552, 12288, 12544, 12800, 12996, 13456, 13824, 14400, 15376, 15488, 15680, 16000, 16384, 16928, 17424, 18432, 18496, 18816, 19200,
                 19600, 20736, 21632, 23040, 24576, 25088, 25600, 26912, 28224, 28800, 30752, 30976, 32768, 36864, 40000, 43264, 44944, 46656, 50176,
                 53824, 57600, 65536, 86528]
HEADS_OF_FLAT = [2, 3, 5, 8, 10, 16, 20, 32, 40, 50, 64, 84, 100, 120, 128, 200, 256, 300, 384, 400, 500, 512, 1000, 1024, 2048, 4096]
# More rows than that, by twos and fours.
MORE_TOKENS = sorted({*range(1026, 2049, 2), *range(2052, 4097, 4)} - set(COMMON_TOKENS))
# Examples that people choose, and data sets have; more rows for layers of any number of features.
MORE_ROWS = [x for x in (
    18, 20, 22, 25, 26, 27, 30, 33, 35, 45, 50, 55, 66, 70, 75, 90, 98, 102, 105, 110, 125, 130, 142, 150, 154, 160, 170, 175, 178, 180, 192, 196, 197,
    200, 204, 210, 220, 225, 240, 250, 256, 270, 300, 308, 350, 353, 360, 375, 385, 392, 394, 404, 420, 450, 455, 500, 504, 550, 600, 616, 625, 650,
    700, 750, 788, 800, 850, 900, 1000, 1100, 1200, 1250, 1437, 1500, 1750, 1797, 1800, 2000, 2250, 2500, 3000, 3500, 4000, 4500, 5000, 6000, 7500,
    8000, 8192, 10000, 12000, 12288, 15000, 16000, 16384, 16512) if x not in ROWS]
ANY_ROWS = sorted(ROWS + MORE_ROWS)
# Heads of one feature (regression, two classes): rows, and features in; of a few features.
ROWS_OF_ONE = sorted({*range(2, 1025), *(x for x in COMMON_TOKENS if x > 1024)})
FEATURES_BESIDE_ONE = sorted({*range(2, 1025), *(x for x in (*COMMON_FEATURES, *FLAT_FEATURES) if x > 1024)})
FEW_FEATURES = [2, 3, 4, 5, 6, 8, 10]
# Vocabularies, layers beside them, tokens.
VOCABULARIES = [2000, 3000, 4000, 5000, 6000, 8000, 8192, 10000, 12000, 15000, 16000, 16384, 20000, 25000, 30000, 30522, 32000, 32768, 40000, 50000,
                50257, 50304, 65536]
LAYERS_BESIDE_VOCABULARY = [32, 48, 64, 96, 100, 128, 160, 192, 200, 256, 288, 300, 320, 384, 400, 448, 480, 512, 576, 640, 768, 896, 1024, 1152, 1280,
                            1536, 2048]
TOKENS_OF_VOCABULARY = [x for x in COMMON_TOKENS if x <= 4096]
LISTS = (TOKENS, FEATURES, [1], HEADS, POSITIONS, HEAD_FEATURES, COMMON_TOKENS, COMMON_FEATURES, COMMON_HEADS, COMMON_POSITIONS, COMMON_HEAD_FEATURES,
         SMALL_TOKENS, MIDDLE_FEATURES, SMALL_FEATURES, LAYERS, ROWS, FLAT_FEATURES, HEADS_OF_FLAT, MORE_TOKENS, MORE_ROWS, ANY_ROWS, ROWS_OF_ONE,
         FEATURES_BESIDE_ONE, FEW_FEATURES, VOCABULARIES, LAYERS_BESIDE_VOCABULARY, TOKENS_OF_VOCABULARY)
ALL_TOKENS, ALL_FEATURES, NONE, ALL_HEADS, ALL_POSITIONS, ALL_HEAD_FEATURES, *OF_COMMON = range(11)
COMMON = dict(zip((ALL_TOKENS, ALL_FEATURES, ALL_HEADS, ALL_POSITIONS, ALL_HEAD_FEATURES), OF_COMMON))
(EVERY_TOKENS, BESIDE_TOKENS, EVERY_FEATURES, SOME_LAYERS, SOME_ROWS, FLAT, HEADS_OF_IT, TOKENS_BY_TWO, OTHER_ROWS, ALL_ROWS, ONES_ROWS, BESIDE_ONE, FEW,
 VOCABULARY, BESIDE_VOCABULARY, ITS_TOKENS) = range(11, len(LISTS))

LINEAR = ((1, 0, 1), (0, 0, 1), (0, 0, 0), (0, 1, 0))


def kinds_of(rows, inputs, outputs, ways=LINEAR):
    """Of a linear layer: as it is with and without a bias, gradients of its input and of its weights."""
    sizes = {(0, 1): (rows, outputs, inputs), (0, 0): (rows, inputs, outputs), (1, 0): (outputs, inputs, rows)}
    return tuple((op, ta, tb, NONE, *sizes[ta, tb]) for op, ta, tb in ways)


# Operator (of record_dispatch.OPS), A transposed, B transposed, the lists of batch, M, N and K.
KINDS = (
    (1, 0, 1, NONE, ALL_TOKENS, ALL_FEATURES, ALL_FEATURES),  # a linear layer with a bias
    (0, 0, 1, NONE, ALL_TOKENS, ALL_FEATURES, ALL_FEATURES),  # without one
    (0, 0, 0, NONE, ALL_TOKENS, ALL_FEATURES, ALL_FEATURES),  # gradients of its input
    (0, 1, 0, NONE, ALL_FEATURES, ALL_FEATURES, ALL_TOKENS),  # and of its weights
    (2, 0, 1, ALL_HEADS, ALL_POSITIONS, ALL_POSITIONS, ALL_HEAD_FEATURES),  # scores of attention
    (2, 0, 0, ALL_HEADS, ALL_POSITIONS, ALL_HEAD_FEATURES, ALL_POSITIONS),  # what they weight
    (2, 1, 0, ALL_HEADS, ALL_POSITIONS, ALL_HEAD_FEATURES, ALL_POSITIONS),  # gradients of keys and values
    (1, 0, 0, NONE, ALL_TOKENS, ALL_FEATURES, ALL_FEATURES),  # a linear layer with a bias whose weights are kept the other way round
    # any number of rows
    *((op, ta, tb, NONE, *((BESIDE_TOKENS, BESIDE_TOKENS, EVERY_TOKENS) if ta else (EVERY_TOKENS, BESIDE_TOKENS, BESIDE_TOKENS))) for op, ta, tb in LINEAR),
    # any number of features out
    *((op, ta, tb, NONE, *((EVERY_FEATURES, SOME_LAYERS, SOME_ROWS) if ta else (SOME_ROWS, EVERY_FEATURES, SOME_LAYERS))) for op, ta, tb in LINEAR if tb or ta),
    # and in
    *((op, ta, tb, NONE, *((SOME_LAYERS, EVERY_FEATURES, SOME_ROWS) if ta else (SOME_ROWS, SOME_LAYERS, EVERY_FEATURES))) for op, ta, tb in LINEAR),
    # flattened pictures in
    *((op, ta, tb, NONE, *((HEADS_OF_IT, FLAT, SOME_ROWS) if ta else (SOME_ROWS, HEADS_OF_IT, FLAT))) for op, ta, tb in LINEAR if tb or ta),
    # and out
    *((op, ta, tb, NONE, *((FLAT, HEADS_OF_IT, SOME_ROWS) if ta else (SOME_ROWS, FLAT, HEADS_OF_IT))) for op, ta, tb in LINEAR),
    # more rows
    *((op, ta, tb, NONE, *((BESIDE_TOKENS, BESIDE_TOKENS, TOKENS_BY_TWO) if ta else (TOKENS_BY_TWO, BESIDE_TOKENS, BESIDE_TOKENS))) for op, ta, tb in LINEAR),
    # other rows: any number of features out and in, flattened pictures in and out
    *kinds_of(OTHER_ROWS, SOME_LAYERS, EVERY_FEATURES),
    *kinds_of(OTHER_ROWS, EVERY_FEATURES, SOME_LAYERS),
    *kinds_of(OTHER_ROWS, FLAT, HEADS_OF_IT),
    *kinds_of(OTHER_ROWS, HEADS_OF_IT, FLAT),
    # gradients of any number of features in
    *kinds_of(SOME_ROWS, EVERY_FEATURES, SOME_LAYERS, LINEAR[2:3]),
    # one feature out: with a bias, without one, gradients of the weights, and of weights that are kept the other way round
    (1, 0, 0, NONE, ONES_ROWS, NONE, BESIDE_ONE),
    (0, 0, 0, NONE, ONES_ROWS, NONE, BESIDE_ONE),
    (0, 0, 0, NONE, NONE, BESIDE_ONE, ONES_ROWS),
    (0, 1, 0, NONE, BESIDE_ONE, NONE, ONES_ROWS),
    # few features out
    *kinds_of(ALL_ROWS, EVERY_FEATURES, FEW),
    # a vocabulary out
    *kinds_of(ITS_TOKENS, BESIDE_VOCABULARY, VOCABULARY),
)
FIRST_SLOWEST = (SOME_LAYERS, FEW, BESIDE_VOCABULARY, NONE)


def order_of(op, ta, tb, batch, m, n, k):
    """Axes of batch (0), M, N and K from the slowest on: tokens, or the heads of all sequences, run fastest; every number of features after the layers beside, or after the few of the other side."""
    if op == 2:
        return (1, 2, 3, 0)
    rows = 3 if ta or m == NONE else 1
    rest = [1, 2] if rows == 3 else [3, 2]
    rest = sorted(rest, key=lambda axis: (m, n, k)[axis - 1] not in FIRST_SLOWEST)
    if OTHER_ROWS in (m, n, k):
        # Of few rows the table is smaller so.
        first, second = sorted(rest, key=lambda axis: (m, n, k)[axis - 1] not in (SOME_LAYERS, HEADS_OF_IT))
        return (first, 0, rows, second)
    return (rest[0], 0, rest[1], rows)


ORDERS = [order_of(*kind) for kind in KINDS]
NUMBERS = (3, 2, 1, 0)  # of record_dispatch.DTYPES: what programs have most first


def count_of(kind):
    return int(np.prod([len(LISTS[i]) for i in KINDS[abs(kind)][3:]]))


LARGEST = int(2 ** 28.5)  # elements of a matrix: what record_dispatch.setup has


def has_one_feature(kind):
    """Whether M or N is 1 in all shapes of a kind. -kind stands for the same shapes, in which that matrix of one row or column is named as transposed."""
    return NONE in KINDS[abs(kind)][4:6]


def calls_of(numbers, kind, begin, end):
    """Rows of record_dispatch.FIELDS (part 4) of a kind's shapes from number `begin` up to `end`; the list of K runs fastest."""
    op, ta, tb, *lists = KINDS[abs(kind)]
    if kind < 0:
        ta, tb = (ta, 1) if lists[2] == NONE else (1, tb)
    at = np.arange(begin, end)
    sizes = []
    for i in reversed(lists):
        sizes.append(np.array(LISTS[i])[at % len(LISTS[i])])
        at = at // len(LISTS[i])
    k, n, m, batch = sizes
    same = lambda x: np.full(end - begin, x)
    return np.stack([same(4), same(op), same(numbers), same(ta), same(tb), m, n, k, batch, m if ta else k, k if tb else n], 1).astype(np.int32)


def is_too_large(calls):
    """These are not recorded."""
    m, n, k, batch = (calls[:, i].astype(np.int64) for i in (5, 6, 7, 8))
    return np.maximum(np.maximum(m * k, n * k), m * n) * batch > LARGEST


def has_one_layout(calls):
    """False where a matrix has one row or column, so that its strides may not say whether it is transposed: these are recorded whatever the trees say."""
    op, ta, tb, m, n, k = (calls[:, i] for i in (1, 3, 4, 5, 6, 7))
    return (n > 1) & (k > 1) & ((m > 1) | (op == 2) | (tb == 1))


def lists_of(kind, numbers):
    """The lists of batch, M, N and K of which the atlas has all shapes: of 16 bits the common sizes."""
    return [COMMON.get(i, i) if numbers < 2 else i for i in KINDS[kind][3:]]


def by_size(kind, shapes):
    """What a kind's shapes, numbered as calls_of has them, say, along batch, M, N and K."""
    return shapes.reshape([len(LISTS[i]) for i in KINDS[kind][3:]])


def in_table(kind, numbers, shapes):
    """Of what a kind's shapes, numbered as calls_of has them, say: that of the shapes in the atlas, along batch, M, N and K."""
    lists = KINDS[kind][3:]
    at = [np.arange(len(LISTS[i])) if some == i else np.searchsorted(LISTS[i], LISTS[some]) for i, some in zip(lists, lists_of(kind, numbers))]
    return by_size(kind, shapes)[np.ix_(*at)]


def is_asked(kind, numbers):
    """Which of the shapes in the atlas a call can have: that of a matrix of one row or column is named as one that is not transposed."""
    _, m, n, k = (np.array(LISTS[i]).reshape([-1 if axis == j else 1 for j in range(4)]) > 1 for axis, i in enumerate(lists_of(kind, numbers)))
    _, ta, tb = KINDS[kind][:3]
    return np.broadcast_to(k & (m | (not ta)) & (n | (not tb)), [len(LISTS[i]) for i in lists_of(kind, numbers)])


def is_in_other_kind(kind, numbers):
    """Which of the shapes in the atlas a kind before has, too, which is asked first."""
    mine, result = lists_of(kind, numbers), False
    for other in range(kind):
        if KINDS[other][:3] != KINDS[kind][:3]:
            continue
        both = [np.isin(LISTS[i], LISTS[j]).reshape([-1 if axis == at else 1 for at in range(4)])
                for axis, (i, j) in enumerate(zip(mine, lists_of(other, numbers)))]
        result = result | both[0] & both[1] & both[2] & both[3]
    return np.broadcast_to(result, [len(LISTS[i]) for i in mine])


def in_order(kind, shapes):
    """What shapes along batch, M, N and K say, as the slabs, rows and columns in which the atlas codes them: what changes least runs fastest."""
    ordered = shapes.transpose(ORDERS[kind])
    return ordered.reshape(ordered.shape[0], -1, ordered.shape[3])
