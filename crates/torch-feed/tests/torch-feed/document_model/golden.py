"""Writes golden.json beside it: losses and steps of Doc2Vec in PyTorch, with torch.optim.Adam.

    python golden.py

The numbers in the repository are PyTorch 2.10's. The first step is from given vectors, the second
shows Adam's running means.
"""

import json
from pathlib import Path

import torch

N_DOCUMENTS, N_WORDS, DIMENSION, N_EXAMPLES, N_CONTEXT, N_NOISE = 4, 7, 5, 6, 4, 3


class Doc2Vec(torch.nn.Module):
    def __init__(self, documents, words, outputs):
        super().__init__()
        self.documents = torch.nn.Parameter(documents.clone())
        self.words = None if words is None else torch.nn.Parameter(words.clone())
        self.outputs = torch.nn.Parameter(outputs.clone())

    def loss(self, doc_ids, context_ids, target_noise_ids):
        hidden = self.documents[doc_ids]
        if self.words is not None:
            hidden = hidden + self.words[context_ids].sum(dim=1)
        outputs = self.outputs[:, target_noise_ids].permute(1, 0, 2)
        scores = torch.bmm(hidden.unsqueeze(1), outputs).squeeze(1)
        of_target = torch.nn.functional.logsigmoid(scores[:, 0])
        of_noise = torch.nn.functional.logsigmoid(-scores[:, 1:]).sum(dim=1)
        return -(of_target + of_noise / (scores.shape[1] - 1)).sum() / scores.shape[0]


def run(words):
    model = Doc2Vec(DOCUMENTS, words, OUTPUTS)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    steps = []
    for _ in range(2):
        optimizer.zero_grad()
        loss = model.loss(DOC_IDS, CONTEXT_IDS, TARGET_NOISE_IDS)
        loss.backward()
        optimizer.step()
        after = {name: value.detach().flatten().tolist() for name, value in model.named_parameters()}
        steps.append({"loss": loss.item(), "after": after})
    return steps


generator = torch.Generator().manual_seed(20)
DOCUMENTS = torch.randn(N_DOCUMENTS, DIMENSION, generator=generator)
WORDS = torch.randn(N_WORDS, DIMENSION, generator=generator)
OUTPUTS = torch.randn(DIMENSION, N_WORDS, generator=generator)
DOC_IDS = torch.randint(N_DOCUMENTS, (N_EXAMPLES,), generator=generator)
CONTEXT_IDS = torch.randint(N_WORDS, (N_EXAMPLES, N_CONTEXT), generator=generator)
TARGET_NOISE_IDS = torch.randint(N_WORDS, (N_EXAMPLES, 1 + N_NOISE), generator=generator)

golden = {
    "sizes": [N_DOCUMENTS, N_WORDS, DIMENSION],
    "documents": DOCUMENTS.flatten().tolist(),
    "words": WORDS.flatten().tolist(),
    "outputs": OUTPUTS.flatten().tolist(),
    "doc_ids": DOC_IDS.tolist(),
    "context_ids": CONTEXT_IDS.tolist(),
    "target_noise_ids": TARGET_NOISE_IDS.tolist(),
    "distributed_memory": run(WORDS),
    "bag_of_words": run(None),
}
Path(__file__).with_name("golden.json").write_text(json.dumps(golden) + "\n")
