"""The figures by name, with captions."""

from __future__ import annotations

from deccs_paper.figures.curves import FIG7_NEEDS, FIG8_NEEDS, draw_fig7, draw_fig8
from deccs_paper.figures.parts import Figure
from deccs_paper.figures.synth import draw_fig1, draw_fig2, draw_fig3, draw_fig5, draw_fig6
from deccs_paper.figures.toys import draw_fig4, draw_fig9

FIGURES = {
    "fig1": Figure(
        "SYNTH from the data to the consensus representation",
        "Four clusters (a), embedded by an autoencoder (b), after some updates (c), and in the round of highest "
        "agreement, where they are compact and well separated (d). Colors are the true classes; (b) to (d) show the "
        "sample of the round.",
        (),
        draw_fig1,
    ),
    "fig2": Figure(
        "The members' clusters before and after",
        "k-means (KM), spectral clustering (SC), agglomerative clustering (AGG) and a Gaussian mixture (GMM) on the "
        "autoencoder's embedding of SYNTH and on the consensus representation, with their ARI.",
        (),
        draw_fig2,
    ),
    "fig3": Figure(
        "Deep clustering methods on SYNTH",
        "Embeddings learned from the same autoencoder by methods that assume one kind of cluster: above in the colors "
        "of the true classes, below in those of the resulting clusters, with the ARI.",
        (),
        draw_fig3,
    ),
    "fig4": Figure(
        "Two rings with one center under each loss",
        "Two clusters whose centers (dot and cross) coincide (a). An update with the cross-entropy alone separates "
        "them by a line (dashed) and distorts them (b); the consensus loss alone draws both to one point (c); together "
        "they separate them and make them compact (d). Distances are in units of the first embedding's deviation. "
        "Both members know the rings, so that only the losses matter.",
        (),
        draw_fig4,
    ),
    "fig5": Figure(
        "One round of DECCS",
        "The encoder embeds a sample (1), every member clusters it (2), a linear classifier learns each "
        "member's clusters (3), and encoder and classifiers are updated (4). SYNTH in round 0; the colors in (1) "
        "and (4) are the true classes.",
        (),
        draw_fig5,
    ),
    "fig6": Figure(
        "Classifier boundaries over the rounds",
        "SYNTH in some rounds up to the one with the highest agreement. Points have the colors of the member's "
        "clusters, the background those of its classifier.",
        (),
        draw_fig6,
    ),
    "fig7": Figure(
        "The weight of the consensus loss",
        "Left: agreement over the rounds for four weights lambda_cons without reconstruction loss, mean over runs with "
        "95 % confidence intervals from five runs on. Right: NMI over lambda_cons without (0) and with (1) the "
        "reconstruction loss. The paper shows MNIST. A run that stopped at full agreement keeps its last value.",
        FIG7_NEEDS,
        draw_fig7,
    ),
    "fig8": Figure(
        "Agreement and NMI over the rounds",
        "Mean over runs, with 95 % confidence intervals from five runs on. NMI is that of the member the labels come "
        "from, on each round's sample. A run that stopped at full agreement keeps its last value.",
        FIG8_NEEDS,
        draw_fig8,
    ),
    "fig9": Figure(
        "Two clusters that no line separates",
        "Two nested half rings: each member's clusters on the autoencoder's embedding (above) and on the consensus "
        "representation (below), with the ARI. In the paper two members are at chance above. This is the first run; "
        "the claims of Section VI count all runs.",
        (),
        draw_fig9,
    ),
}
