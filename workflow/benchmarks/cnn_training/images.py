"""The images that a rank trains on, and their labels.

A step takes `batch` images for each device of each rank; device d of rank r takes the images from
``(r * devices + d) * batch`` on of the step's. Images are float32 in [-1, 1], ``[batch, H, W, C]``
or ``[batch, C, H, W]``, labels int32 ``[batch]``. `fixed_batch` and `synthetic_pipeline` make every
image of the seed and its number in the whole step (or run), so that two ranks with batches of 16
train on what one with a batch of 32 does.

The pipelines are endless, and their elements are ``(images, labels)``, each a tuple by device.
Written for speed, by measurement: what is done to an image is done to one at a time, in parallel,
before batches are made, and a flip is a branch (one that always moves the pixels takes three times
as long for the pipeline as a whole).
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from cnn_training import cifar, dataset, models
from harness.program import EXIT_BAD_DATA, EXIT_MISSING_DATA, EXIT_PARAMETERS, ProgramError
from harness.seeded import fixed_batch
from harness.staging import file_path

MADE, READ = 0x6D616465, 0x72656164  # kinds of random numbers, kept apart
POOL = 16  # images that `synthetic_pipeline` varies
PADDING = 4  # pixels by which an image of CIFAR-10 is moved at most
PARALLEL_FILES = 4
SHUFFLE_BYTES = 32 << 20  # encoded images that wait to be drawn from
AREA_RANGE = (0.05, 1.0)  # of the part of a JPEG that is cut out
ASPECT_RANGE = (0.75, 1.33)

Dataset = tf.data.Dataset
Batch = tuple[tf.Tensor, tf.Tensor]  # images, labels
Batches = Callable[[], list[Batch]]  # the next batch of each device; part of a step's graph


class Share:
    """What one rank wants: sizes, layout, and which of all ranks it is."""

    def __init__(self, params: dict[str, Any], rank: int) -> None:
        """Take everything from the benchmark's parameters."""
        self.data_set, self.data_format = params["data_set"], params["data_format"]
        self.shape = models.image_shape(params["model"], self.data_set)  # height, width, channels
        self.classes, self.seed = models.CLASSES[self.data_set], params["seed"]
        self.rank, self.ranks, self.devices = rank, params["ranks"], params["devices_per_rank"]
        self.batch = params["batch_size"]  # images per device and step
        self.step = self.devices * self.batch  # images of this rank in a step


def to_layout(images: Any, data_format: str) -> Any:
    """Turn ``[..., H, W, C]`` into `data_format`, a tensor as well as an array."""
    if data_format == "NHWC":
        return images
    if tf.is_tensor(images):  # tf.transpose is slower and, of uint8, makes oneDNN complain
        return tf.stack(tf.unstack(images, axis=-1), axis=-3)
    return np.ascontiguousarray(np.moveaxis(images, -1, -3))


def fixed_batches(params: dict[str, Any], rank: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the batch of each device of `rank` that input synthetic trains on, in its layout."""
    share = Share(params, rank)
    batches = []
    for device in range(share.devices):
        first = rank * share.step + device * share.batch
        images, labels = fixed_batch(share.shape, share.classes, share.seed, first, share.batch)
        batches.append((to_layout(images, share.data_format), labels))
    return batches


def _draws(kind: int, seed: int, number: tf.Tensor, count: int) -> tf.Tensor:
    """Return `count` random int32 that are not negative, of `seed` and `number` alone."""
    start = _start(seed ^ kind << 32, number)
    return tf.random.stateless_uniform([count], start, None, None, tf.int32) & 0x7FFFFFFF


def _start(seed: int, number: tf.Tensor) -> tf.Tensor:
    """Return the seed that TensorFlow's stateless functions take."""
    return tf.stack([tf.constant(seed % 2**63, tf.int64), number])


def _finished(image: tf.Tensor, flip: tf.Tensor, share: Share) -> tf.Tensor:
    """Mirror an image where `flip` is odd, scale it from [0, 255] to [-1, 1] and lay it out."""
    image = tf.cond(flip % 2 > 0, lambda: tf.reverse(image, [1]), lambda: image)
    image = to_layout(tf.ensure_shape(image, share.shape), share.data_format)
    return tf.cast(image, tf.float32) * (1 / 127.5) - 1.0


def _moved(image: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
    """Move an image of CIFAR-10 by up to PADDING pixels in both directions; black comes in."""
    padded = tf.pad(image, [[PADDING, PADDING], [PADDING, PADDING], [0, 0]])
    corner = draws[:2] % (2 * PADDING + 1)
    return tf.slice(padded, tf.concat([corner, [0]], 0), dataset.CIFAR10_SHAPE)


def _batches(data: Dataset, share: Share, order: bool) -> Dataset:
    """Make a rank's steps of single images: ``(images, labels)``, each a tuple by device."""

    def by_device(images: tf.Tensor, labels: tf.Tensor) -> tuple[Any, Any]:
        return tuple(tf.split(images, share.devices)), tuple(tf.split(labels, share.devices))

    data = data.batch(share.step, drop_remainder=True).map(by_device)
    options = tf.data.Options()
    options.deterministic = order
    return data.prefetch(tf.data.AUTOTUNE).with_options(options)


def synthetic_pipeline(share: Share) -> Dataset:
    """Return steps of images that tf.data generates in each step, without files.

    Random uint8 images are moved (cifar10), mirrored, scaled and laid out.
    """
    rng = np.random.default_rng([MADE, share.seed])
    with tf.device("CPU:0"):
        pool = tf.constant(rng.integers(0, 256, (POOL, *share.shape), np.uint8))
        classes = tf.constant(rng.integers(share.classes, size=POOL), tf.int32)

    def make(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        step, place = number // share.step, number % share.step
        whole = (step * share.ranks + share.rank) * share.step + place
        draws = _draws(MADE, share.seed, whole, 4)
        member = draws[3] % POOL
        image = _moved(pool[member], draws) if share.data_set == "cifar10" else pool[member]
        return _finished(image, draws[2], share), classes[member]

    data = Dataset.counter().map(make, num_parallel_calls=tf.data.AUTOTUNE)
    return _batches(data, share, order=True)


def _decoder(share: Share, varied: bool = True) -> Callable[..., tuple[tf.Tensor, tf.Tensor]]:
    """Return the function from a number and a record of the stand-in to an image and its label.

    Unless `varied`, an image is neither cut, moved nor mirrored.
    """
    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }

    def jpeg(encoded: tf.Tensor, number: tf.Tensor) -> tf.Tensor:
        begin, size, _ = tf.image.stateless_sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(encoded),
            tf.zeros([1, 0, 4]),
            _start(share.seed, number),
            area_range=AREA_RANGE,
            aspect_ratio_range=ASPECT_RANGE,
            use_image_if_no_bounding_boxes=True,
        )
        window = tf.concat([begin[:2], size[:2]], 0)
        image = tf.image.decode_and_crop_jpeg(
            encoded, window, channels=3, fancy_upscaling=False, dct_method="INTEGER_FAST"
        )
        return tf.image.resize(image, share.shape[:2])

    def entire(encoded: tf.Tensor) -> tf.Tensor:
        return tf.image.resize(tf.io.decode_jpeg(encoded, channels=3), share.shape[:2])

    def decode(number: tf.Tensor, record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        example = tf.io.parse_single_example(record, features)
        draws = _draws(READ, share.seed, number, 3)
        encoded = example["image/encoded"]
        if share.data_set == "imagenet":
            image = jpeg(encoded, number) if varied else entire(encoded)
        else:
            image = tf.reshape(tf.io.decode_raw(encoded, tf.uint8), dataset.CIFAR10_SHAPE)
            image = _moved(image, draws) if varied else image
        label = tf.cast(example["image/class/label"], tf.int32)
        return _finished(image, draws[2] if varied else tf.constant(0), share), label

    return decode


def check_files(files: list[str]) -> None:
    """Raise ProgramError when one of the files is missing (66) or empty (65), naming the first."""
    for path in files:
        try:
            if os.stat(path).st_size == 0:  # noqa: PTH116 (hot at scale)
                raise ProgramError(EXIT_BAD_DATA, f"{path} is empty")
        except OSError:
            raise ProgramError(EXIT_MISSING_DATA, f"missing {path}") from None


def shared_records(folder: str | Path, images: int, images_per_file: int, share: Share) -> Dataset:
    """Return an endless stream of the serialised images that are this rank's, no other rank's.

    Whole files go round the ranks; with fewer files than ranks it is the images in them. Order is
    random. Raises ProgramError when a file is missing or empty, or images are fewer than ranks.
    """
    if images < share.ranks:
        message = f"data_images {images} are fewer than the {share.ranks} ranks"
        raise ProgramError(EXIT_PARAMETERS, message)
    files = [file_path(folder, "train", index) for index in range(images // images_per_file)]
    seed = share.seed + share.rank
    if len(files) < share.ranks:
        check_files(files)
        data = tf.data.TFRecordDataset(files).shard(share.ranks, share.rank).repeat()
        share_images = -(-images // share.ranks)
    else:
        files = files[share.rank :: share.ranks]
        check_files(files)
        data = Dataset.from_tensor_slices(files).shuffle(len(files), seed).repeat()
        data = data.interleave(
            tf.data.TFRecordDataset,
            cycle_length=min(PARALLEL_FILES, len(files)),
            num_parallel_calls=tf.data.AUTOTUNE,
        )
        share_images = len(files) * images_per_file
    record_bytes = os.stat(files[0]).st_size // images_per_file + 1  # noqa: PTH116
    return data.shuffle(max(1, min(share_images, SHUFFLE_BYTES // record_bytes)), seed)


def tfrecord_pipeline(
    share: Share, folder: str | Path, images: int, images_per_file: int
) -> Dataset:
    """Return steps of the stand-in's images: read, shuffled, decoded, varied and scaled.

    Of a JPEG a random part is decoded and brought to the model's size; images of cifar10 are moved.
    Raises ProgramError as `shared_records` does. A damaged file shows
    when it is read: tf.errors.DataLossError, or InvalidArgumentError when its checksums are right.
    """
    data = shared_records(folder, images, images_per_file, share)
    decode = _decoder(share)
    data = data.enumerate(share.rank << 32).map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    return _batches(data, share, order=False)


def cifar10_pipeline(share: Share, count: int | None = None) -> Dataset:
    """Return steps of the real CIFAR-10 in the folder that CIFAR10_DIR names, held in memory.

    Each rank takes every `ranks`-th image, of the first `count` or of all, in an order new in each
    epoch. Raises ProgramError when the data are missing, damaged or fewer than the ranks.
    """
    images, labels = cifar.read(share.rank, share.ranks, count)
    if len(labels) == 0:
        raise ProgramError(EXIT_PARAMETERS, f"CIFAR-10 here has no image for rank {share.rank}")
    with tf.device("CPU:0"):  # captured by the function below, not copied into its graph
        images, labels = tf.constant(images), tf.constant(labels)

    def vary(number: tf.Tensor, index: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        draws = _draws(READ, share.seed, number, 3)
        return _finished(_moved(images[index], draws), draws[2], share), labels[index]

    data = Dataset.range(len(labels)).shuffle(len(labels), share.seed + share.rank).repeat()
    data = data.enumerate(share.rank << 32).map(vary, num_parallel_calls=tf.data.AUTOTUNE)
    return _batches(data, share, order=False)


def rank_dataset(params: dict[str, Any], rank: int, data: Path | None = None) -> Dataset:
    """Return the endless steps of `rank` for input pipeline, tfrecords or cifar10.

    An element is ``(images, labels)``: ``element[0][d]`` are the images of device d of this rank,
    ``element[1][d]`` their labels. `data` is the folder of the stand-in (tfrecords). Raises
    ProgramError when data are missing or damaged; see the pipelines for what shows only later.
    """
    share = Share(params, rank)
    kind = params["input"]
    if kind == "pipeline":
        return synthetic_pipeline(share)
    if kind == "cifar10":
        return cifar10_pipeline(share, params["data_images"] if params["epochs"] else None)
    folder = stand_in_folder(params, data)
    return tfrecord_pipeline(share, folder, params["data_images"], params["images_per_file"])


def stand_in_folder(params: dict[str, Any], data: Path | None) -> Path:
    """Return the folder of the stand-in. Raises ProgramError where it is none, or another's."""
    if data is None:
        raise ProgramError(EXIT_MISSING_DATA, "the run file names no data set")
    stand_in = dataset.StandIn(params["data_set"], params["images_per_file"])
    if problem := stand_in.mismatch(data):
        raise ProgramError(EXIT_MISSING_DATA, problem)
    return data


def held_back(params: dict[str, Any], data: Path | None = None) -> Dataset:
    """Return the images that are validated on, once, as they are: ``(images, labels)`` by batch.

    Of the real CIFAR-10 those of its test batch; of the stand-in those in the files behind the ones
    that are trained on. Raises ProgramError when data are missing or damaged.
    """
    share, count = Share(params, 0), params["validation_images"]
    keep = tf.constant(0)
    if params["input"] == "cifar10":
        images, labels = cifar.read_test(count)
        with tf.device("CPU:0"):
            images, labels = tf.constant(images), tf.constant(labels)

        def read(index: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return _finished(images[index], keep, share), labels[index]

        made = Dataset.range(count).map(read, num_parallel_calls=tf.data.AUTOTUNE)
    else:
        folder, size = stand_in_folder(params, data), params["images_per_file"]
        first = params["data_images"] // size
        files = [file_path(folder, "train", first + n) for n in range(count // size)]
        check_files(files)
        whole = _decoder(share, varied=False)
        made = Dataset.counter().take(count)
        made = Dataset.zip((made, tf.data.TFRecordDataset(files)))
        made = made.map(whole, num_parallel_calls=tf.data.AUTOTUNE)
    return made.batch(params["batch_size"]).prefetch(tf.data.AUTOTUNE)


def feed(params: dict[str, Any], data: Path | None, rank: int, devices: list[str]) -> Batches:
    """Return the function that gives the batches of a rank's devices, which may be on a server.

    Of input synthetic they lie on the devices and are the same in every step. Raises ProgramError
    when data are missing or damaged.
    """
    if params["input"] == "synthetic":
        resident = []
        for device, batch in zip(devices, fixed_batches(params, rank), strict=True):
            with tf.device(device):
                resident.append(tuple(tf.identity(tf.constant(part)) for part in batch))
        return lambda: resident
    with tf.device(host_of(devices[0])):
        iterator = iter(rank_dataset(params, rank, data))

    def read() -> list[Batch]:
        return list(zip(*next(iterator), strict=True))

    return read


def host_of(device: str) -> str:
    """Return the CPU of the process that a device belongs to."""
    return device.rpartition("/device:")[0] + "/device:CPU:0"
