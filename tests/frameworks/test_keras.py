"""Keras 3 on the torch backend: fit() with weights for every sample."""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from matrix import cell  # noqa: E402
from truth import BATCH, EPOCHS, METHOD, SIZE, Step, features_of, judge, label_of  # noqa: E402

from tamis.integrations.keras import PrunedData, PrunedModel  # noqa: E402

NAME = "Keras on torch"
X = features_of(range(SIZE)).numpy()
Y = np.array([label_of(i) for i in range(SIZE)])


class Net(PrunedModel):
    """Logs what really comes in; does not look at the index."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(3, kernel_initializer="zeros")
        self.steps = []

    def call(self, x):
        return self.dense(x[:, 1:])

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        if training and self.pruned_data is not None and hasattr(x, "detach") and not x.is_meta:
            losses = keras.losses.sparse_categorical_crossentropy(y, y_pred, from_logits=True)
            ids = x.detach()[:, 0].round().long().tolist()
            # The weights are exact, one per sample; judge() knows their mean.
            factor = float(sample_weight[:, 0].mean())
            epoch = self.pruned_data.pruner.epoch
            self.steps.append(Step(epoch, ids, float(losses.detach().mean()), factor=factor))
        return super().compute_loss(x, y, y_pred, sample_weight, training)


class Save(keras.callbacks.Callback):
    def __init__(self, data):
        super().__init__()
        self.data, self.states = data, []

    def on_train_batch_end(self, batch, logs=None):
        self.states.append((self.data.pruner.serialize(), self.model.get_weights()))


def make_optimizer(accumulation):
    return keras.optimizers.SGD(0.1, gradient_accumulation_steps=accumulation)


def make(accumulation=None, **options):
    data = PrunedData(X, Y, METHOD, epochs=EPOCHS, batch_size=BATCH, **options)
    model = Net()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=make_optimizer(accumulation), loss=loss, weighted_metrics=["accuracy"])
    return model, data


def fit(model, data, callbacks=(), **options):
    options = {"shuffle": False, "verbose": 0, **options}
    model.fit(data, epochs=EPOCHS, initial_epoch=data.next_epoch,
              callbacks=[data.callback, *callbacks], **options)


pytestmark = pytest.mark.filterwarnings("ignore:Your input ran out of data")


@cell(NAME, "plain", "accumulation")
@pytest.mark.parametrize("accumulation", [None, 2])
def test_every_epoch_has_its_own_samples_and_weights(accumulation):
    model, data = make(accumulation)
    fit(model, data)
    judge(model.steps, data.pruner.scores)


@cell(NAME, "workers", refused=True)
def test_workers_are_refused():
    with pytest.raises(ValueError, match="leave out workers"):
        make(workers=2)


@cell(NAME, "validation")
def test_validation_is_not_scored():
    model, data = make()
    fit(model, data, validation_data=(X[:9], Y[:9]))
    judge(model.steps, data.pruner.scores)


@cell(NAME, "last skipped")
def test_an_incomplete_last_batch_is_dropped():
    model, data = make(drop_last=True)
    fit(model, data)
    judge(model.steps, data.pruner.scores, drop_last=True)


@cell(NAME, "break", "resume")
def test_a_run_resumed_after_any_batch_is_the_run_that_was_not_interrupted():
    model, data = make()
    save = Save(data)
    fit(model, data, [save])
    whole = model.steps
    for number, (state, weights) in enumerate(save.states, 1):
        model, data = make()
        model(X[:1])
        model.set_weights(weights)
        data.pruner.deserialize(state)
        if data.next_epoch < EPOCHS:
            fit(model, data)
        assert [s.ids for s in model.steps] == [s.ids for s in whole[number:]], number
        judge(whole[:number] + model.steps, data.pruner.scores)


@cell(NAME, "plain", refused=True)
def test_shuffled_batches_are_refused():
    model, data = make()
    with pytest.raises(RuntimeError, match="shuffle=False"):
        fit(model, data, shuffle=True)


@cell(NAME, "two processes", refused=True)
def test_several_processes_are_refused(monkeypatch):
    monkeypatch.setattr("tamis.integrations.keras.num_ranks", lambda: 2)
    with pytest.raises(RuntimeError, match="one process"):
        make()


def test_a_model_that_does_not_report_its_losses_is_refused():
    _, data = make()
    model = keras.Sequential([keras.layers.Dense(3)])
    model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
    with pytest.raises(TypeError, match="PrunedModel"):
        fit(model, data)
