"""The loops of DECCS as one would first write them, for ``make bench`` to compare with.

A module per member, a loop over members, a DataLoader, a loss per member, ``.item()`` after each step.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from deccs.network.autoencoder import Autoencoder


def plain_autoencoder(n_columns: int, layers: tuple[int, ...]) -> Autoencoder:
    """The same network, module by module."""
    ours = Autoencoder.feed_forward(n_columns, layers)
    encoder, decoder = (nn.Sequential(*part.children()) for part in (ours.encoder, ours.decoder))
    return Autoencoder(encoder, decoder)


def endless(loader: DataLoader[tuple[torch.Tensor, ...]]) -> Iterator[tuple[torch.Tensor, ...]]:
    while True:
        yield from loader


def pretraining_seconds(
    autoencoder: Autoencoder, X: torch.Tensor, batch_size: int, n_steps: int
) -> float:
    """Seconds per step of denoising reconstruction."""
    loader = endless(DataLoader(TensorDataset(X), batch_size, shuffle=True, drop_last=True))
    optimizer = torch.optim.Adam(autoencoder.parameters(), lr=1e-3)
    losses = []
    start = time.perf_counter()
    for _ in range(n_steps):
        (x,) = next(loader)
        noisy = nn.functional.dropout(x, 0.2) * 0.8
        _, back = autoencoder(noisy)
        loss = nn.functional.mse_loss(back, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return (time.perf_counter() - start) / n_steps


def update_seconds(
    autoencoder: Autoencoder, X: torch.Tensor, labels: torch.Tensor, batch_size: int, n_steps: int
) -> float:
    """Seconds per step of the update with all three losses; labels are (n_sample, n_members), X has more rows."""
    n_sample, n_members = labels.shape
    n_clusters = int(labels.max()) + 1
    clustered = endless(
        DataLoader(TensorDataset(X[:n_sample], labels), batch_size, shuffle=True, drop_last=True)
    )
    others = endless(
        DataLoader(TensorDataset(X[n_sample:]), batch_size, shuffle=True, drop_last=True)
    )
    with torch.no_grad():
        n_latent = autoencoder.encoder(X[:2]).shape[1]
        Z = autoencoder.encoder(X[:n_sample])
    heads = [nn.Linear(n_latent, n_clusters) for _ in range(n_members)]
    centers = [
        torch.stack([Z[labels[:, member] == cluster].mean(0) for cluster in range(n_clusters)])
        for member in range(n_members)
    ]
    parameters = [
        *autoencoder.parameters(),
        *(weight for head in heads for weight in head.parameters()),
    ]
    optimizer = torch.optim.SGD(parameters, lr=1e-3, momentum=0.9)
    losses = []
    start = time.perf_counter()
    for _ in range(n_steps):
        (x, y), (other,) = next(clustered), next(others)
        z, back = autoencoder(x)
        z_other, back_other = autoencoder(other)
        loss = nn.functional.mse_loss(back, x) + nn.functional.mse_loss(back_other, other)
        for member, head in enumerate(heads):
            logits, logits_other = head(z), head(z_other)
            labels_here = y[:, member]
            for cluster in labels_here.unique():
                mean = z[labels_here == cluster].mean(0).detach()
                centers[member][cluster] = 0.5 * centers[member][cluster] + 0.5 * mean
            predictions = logits_other.argmax(1)
            alpha = logits.softmax(1).gather(1, labels_here[:, None])[:, 0].detach()
            alpha_other = logits_other.softmax(1).gather(1, predictions[:, None])[:, 0].detach()
            cons = (alpha * (z - centers[member][labels_here]).square().mean(1)).mean()
            cons_other = (
                alpha_other * (z_other - centers[member][predictions]).square().mean(1)
            ).mean()
            loss = (
                loss
                + (nn.functional.cross_entropy(logits, labels_here) + cons + cons_other) / n_members
            )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return (time.perf_counter() - start) / n_steps
