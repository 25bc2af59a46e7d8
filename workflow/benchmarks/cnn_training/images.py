"""The images that a rank trains on, and their labels.

A step takes `batch_size` images for each device of each rank. Images are float32 in [-1, 1],
``[batch, H, W, C]`` or ``[batch, C, H, W]``, labels int32 ``[batch]``. Those of input synthetic
depend on the seed and their number in the whole step alone, so that two ranks with batches of 16
train on what one with a batch of 32 does.

The pipelines are endless, and their elements are ``(images, labels)``, each a tuple by device.
Written for speed, by measurement: what is done to an image is done to one at a time, in parallel,
before batches are made.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from cnn_training import dataset, models
from harness import tf_training
from harness.program import EXIT_BAD_DATA, ProgramError
from harness.seeded import fixed_batch

POOL = 16  # images that input pipeline varies
PADDING = 4  # pixels by which an image of CIFAR-10 is moved at most
PARALLEL_FILES = 4
SHUFFLE_BYTES = 32 << 20  # encoded images that wait to be drawn from
AREA_RANGE = (0.05, 1.0)  # of the part of a JPEG that is cut out
ASPECT_RANGE = (0.75, 1.33)
FEATURES = {
    "image/encoded": tf.io.FixedLenFeature([], tf.string),
    "image/class/label": tf.io.FixedLenFeature([], tf.int64),
}

Dataset = tf.data.Dataset
Batch = tuple[tf.Tensor, tf.Tensor]  # images, labels; or an image and its label
Batches = Callable[[], list[Batch]]  # the next batch of each device; part of a step's graph


def shape_of(params: dict[str, Any]) -> tuple[int, int, int]:
    """Return (height, width, channels) of a point's images."""
    return models.image_shape(params["model"], params["data_set"])


def to_layout(images: tf.Tensor, data_format: str) -> tf.Tensor:
    """Turn ``[..., H, W, C]`` into `data_format`."""
    # tf.transpose is slower and, of uint8, makes oneDNN complain.
    return images if data_format == "NHWC" else tf.stack(tf.unstack(images, axis=-1), axis=-3)


def scaled(image: tf.Tensor, params: dict[str, Any]) -> tf.Tensor:
    """Lay out an image and scale it from [0, 255] to [-1, 1]."""
    image = to_layout(tf.ensure_shape(image, shape_of(params)), params["data_format"])
    return tf.cast(image, tf.float32) * (1 / 127.5) - 1.0


def decoded(record: tf.Tensor, params: dict[str, Any]) -> Batch:
    """Return image and label of a record of the stand-in; of a JPEG a random part, resized."""
    example = tf.io.parse_single_example(record, FEATURES)
    encoded, label = example["image/encoded"], tf.cast(example["image/class/label"], tf.int32)
    if params["data_set"] == "cifar10":
        return tf.reshape(tf.io.decode_raw(encoded, tf.uint8), dataset.CIFAR10_SHAPE), label
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.io.extract_jpeg_shape(encoded),
        tf.zeros([1, 0, 4]),
        area_range=AREA_RANGE,
        aspect_ratio_range=ASPECT_RANGE,
        use_image_if_no_bounding_boxes=True,
    )
    window = tf.concat([begin[:2], size[:2]], 0)
    image = tf.image.decode_and_crop_jpeg(
        encoded, window, channels=3, fancy_upscaling=False, dct_method="INTEGER_FAST"
    )
    return tf.image.resize(image, shape_of(params)[:2]), label


def varied(image: tf.Tensor, params: dict[str, Any]) -> tf.Tensor:
    """Move an image of CIFAR-10 by up to PADDING pixels, black coming in; mirror every second."""
    if params["data_set"] == "cifar10":
        padded = tf.pad(image, [[PADDING, PADDING], [PADDING, PADDING], [0, 0]])
        image = tf.image.random_crop(padded, dataset.CIFAR10_SHAPE)
    return tf.image.random_flip_left_right(image)


def stand_in_files(params: dict[str, Any], folder: Path | None) -> list[str]:
    """Return the stand-in's files, those of validation last; ProgramError where one is missing."""
    stand_in = dataset.StandIn.from_params(params)
    images = params["data_images"] + (params["validation_images"] if params["epochs"] else 0)
    count = images // params["images_per_file"]
    if problem := stand_in.missing(folder, {"train": count}):
        raise ProgramError(*problem)
    return [stand_in.path(str(folder), "train", number) for number in range(count)]


def shared_records(params: dict[str, Any], rank: int, folder: Path | None) -> Dataset:
    """Return an endless stream of the serialised images that are this rank's, in random order.

    Whole files go round the ranks. Raises ProgramError as `stand_in_files` does, and for an empty
    file, which TensorFlow reads as no images.
    """
    stand_in = dataset.StandIn.from_params(params)
    count = params["data_images"] // stand_in.images_per_file
    files = stand_in_files(params, folder)[rank : count : params["ranks"]]
    if empty := next((path for path in files if not Path(path).stat().st_size), None):
        raise ProgramError(EXIT_BAD_DATA, f"{empty} is empty")
    data = Dataset.from_tensor_slices(files).shuffle(len(files)).repeat()
    data = data.interleave(
        tf.data.TFRecordDataset,
        cycle_length=min(PARALLEL_FILES, len(files)),
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=False,
    )
    most = SHUFFLE_BYTES * stand_in.images_per_file // stand_in.file_bytes
    return data.shuffle(min(len(files) * stand_in.images_per_file, most))


def held_images(params: dict[str, Any], rank: int) -> Dataset:
    """Return an endless stream of the images in memory that are this rank's, in random order.

    Of input cifar10 they are every `ranks`-th of the first `data_images` or, without epochs, of
    all. Raises ProgramError as `dataset.read_cifar10` does.
    """
    if params["input"] == "cifar10":
        count = params["data_images"] if params["epochs"] else None
        every = slice(rank, None, params["ranks"])
        images, labels = (
            each[every] for each in dataset.read_cifar10(dataset.CIFAR10_TRAIN, count)
        )
    else:
        rng = np.random.default_rng([params["seed"], rank])
        images = rng.integers(0, 256, (POOL, *shape_of(params)), np.uint8)
        labels = rng.integers(models.CLASSES[params["data_set"]], size=POOL, dtype=np.int32)
    return Dataset.from_tensor_slices((images, labels)).shuffle(len(labels)).repeat()


def rank_dataset(params: dict[str, Any], rank: int, folder: Path | None = None) -> Dataset:
    """Return the endless steps of `rank` for input pipeline, tfrecords or cifar10.

    An element is ``(images, labels)``: ``element[0][d]`` are the images of device d of this rank,
    ``element[1][d]`` their labels. `folder` is that of the stand-in (tfrecords). Raises
    ProgramError when data are missing or damaged. A damaged file of the stand-in shows when it is
    read: tf.errors.DataLossError, or InvalidArgumentError when its checksums are right.
    """
    devices, reads = params["devices_per_rank"], params["input"] == "tfrecords"
    tf_training.set_seeds(params["seed"], rank)  # of all that is drawn here

    def make(*element: tf.Tensor) -> Batch:
        image, label = decoded(*element, params) if reads else element
        return scaled(varied(image, params), params), label

    def by_device(images: tf.Tensor, labels: tf.Tensor) -> tuple[Any, Any]:
        return tuple(tf.split(images, devices)), tuple(tf.split(labels, devices))

    data = shared_records(params, rank, folder) if reads else held_images(params, rank)
    data = data.map(make, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
    data = data.batch(devices * params["batch_size"], drop_remainder=True).map(by_device)
    return data.prefetch(tf.data.AUTOTUNE)


def held_back(params: dict[str, Any], folder: Path | None = None) -> Dataset:
    """Return the images that are validated on, once, as they are: ``(images, labels)`` by batch.

    Of the real CIFAR-10 those of its test batch; of the stand-in those in the files behind the ones
    that are trained on. Raises ProgramError when data are missing or damaged.
    """
    if params["input"] == "cifar10":
        held = dataset.read_cifar10(dataset.CIFAR10_TEST, params["validation_images"])
        data = Dataset.from_tensor_slices(held)
    else:
        trained = params["data_images"] // params["images_per_file"]
        data = tf.data.TFRecordDataset(stand_in_files(params, folder)[trained:])
        data = data.map(lambda record: decoded(record, params))
    made = data.map(lambda image, label: (scaled(image, params), label))
    return made.batch(params["batch_size"]).prefetch(tf.data.AUTOTUNE)


def feed(params: dict[str, Any], folder: Path | None, rank: int, devices: list[str]) -> Batches:
    """Return the function that gives the batches of a rank's devices, which may be on a server.

    Of input synthetic they lie on the devices and are the same in every step. Raises ProgramError
    when data are missing or damaged.
    """
    if params["input"] == "synthetic":
        classes, size = models.CLASSES[params["data_set"]], params["batch_size"]
        resident = []
        for number, device in enumerate(devices, rank * len(devices)):
            images, labels = fixed_batch(
                shape_of(params), classes, params["seed"], number * size, size
            )
            with tf.device(device):
                images = to_layout(tf.constant(images), params["data_format"])
                resident.append((tf.identity(images), tf.identity(labels)))
        return lambda: resident
    host = devices[0].rpartition("/device:")[0] + "/device:CPU:0"
    with tf.device(host):  # of the process that the devices belong to
        iterator = iter(rank_dataset(params, rank, folder))
    return lambda: list(zip(*next(iterator), strict=True))
