# SPDX-License-Identifier: Apache-2.0
"""Models of traces that no package has ready."""

import torch


class Encoder(torch.nn.Module):
    """An encoder of the size of BERT base: embeddings, 12 layers of width 768, and a classifier."""

    def __init__(self, vocabulary: int = 30522, width: int = 768, layers: int = 12) -> None:
        super().__init__()
        self.tokens = torch.nn.Embedding(vocabulary, width)
        self.places = torch.nn.Embedding(512, width)
        layer = torch.nn.TransformerEncoderLayer(
            width, nhead=12, dim_feedforward=4 * width, activation="gelu", batch_first=True
        )
        self.encoder = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.classifier = torch.nn.Linear(width, 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = self.encoder(self.tokens(tokens) + self.places(places))
        return self.classifier(hidden[:, 0])
