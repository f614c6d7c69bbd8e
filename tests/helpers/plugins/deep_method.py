"""A deep method: reconstruction, and every point is pulled towards its nearest center."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch

from deccs.checks import number
from deccs.data.sampling import EveryRow
from deccs.deep.base import AutoencoderMethod, first_centers, squared_distances
from deccs.network.autoencoder import encode
from deccs.network.reconstruction import error_for
from deccs.seeds import generator_for
from deccs.training.batches import Batches
from deccs.training.engine import Learner


@dataclass(eq=False, repr=False, kw_only=True)
class Pull(AutoencoderMethod, method="Pull"):
    strength: Annotated[float, number(at_least=0)] = 0.01

    def _train(self, autoencoder, rows, fit):
        learner = Pulled(autoencoder, rows, self, fit.root)
        self._run(learner, rows, fit)
        self.cluster_centers_ = learner.centers.double().numpy()

    def _belongs(self, Z):
        return np.eye(self.n_wanted)[squared_distances(Z, self.cluster_centers_).argmin(axis=1)]


class Pulled(Learner):
    stage = "Pull"
    learned = ("autoencoder", "centers")
    random = ("batches",)

    def __init__(self, autoencoder, rows, method, root):
        self.autoencoder, self.rows, self.strength = autoencoder, rows, method.strength
        self.error = error_for(rows)
        self.centers = first_centers(encode(autoencoder, rows), method.n_wanted, root)
        self.batches = Batches(
            EveryRow(len(rows)), method.batch_size, generator_for(root, "batches")
        )
        autoencoder.train()

    def start(self, rate):
        return [torch.optim.Adam(self.autoencoder.parameters(), lr=rate)]

    def loss(self, step):
        x = self.rows[next(self.batches)]
        z = self.autoencoder.encoder(x)
        pull = torch.cdist(z, self.centers).min(1).values.square().mean()
        return self.error(self.autoencoder.decoder(z), x) + self.strength * pull
