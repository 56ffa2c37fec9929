"""A rank of torch.distributed's DistributedDataParallel over Gloo, which takes turns with Sluice.

The driver (ddp.cc) starts it as  PYTHON ddp_ranks.py SOCKET FOLDER RANK RANKS  and sends requests, one
JSON document each; sluice_ranks.cc serves the same requests. It sleeps between requests.
"""
import hashlib
import json
import math
import os
import signal
import socket
import sys
import time

ADDRESS, FOLDER, RANK, RANKS = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
MOST_MESSAGE = 1 << 16  # bytes, as in worker.h

# Pin before torch starts threads, so that they stay on the rank's core, too.
cores = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cores[RANK % len(cores)]})
signal.signal(signal.SIGINT, signal.SIG_IGN)

try:
    import torch
    import torch.distributed as dist
    import torch.nn as nn
    import torch.nn.functional as F
    from torch.nn.parallel import DistributedDataParallel
except ImportError as missing:
    print(f"contender: {sys.executable} has no torch ({missing})", file=sys.stderr)
    sys.exit(1)


def convolution(inputs, outputs, kernel=3, stride=1, padding=1, bias=False):
    return nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=bias)


def alexnet(classes):
    """Krizhevsky 2014, in a single tower; dropout before the first two matrices."""
    return nn.Sequential(
        convolution(3, 64, 11, 4, 2, True), nn.ReLU(True), nn.MaxPool2d(3, 2),
        convolution(64, 192, 5, 1, 2, True), nn.ReLU(True), nn.MaxPool2d(3, 2),
        convolution(192, 384, bias=True), nn.ReLU(True),
        convolution(384, 256, bias=True), nn.ReLU(True),
        convolution(256, 256, bias=True), nn.ReLU(True), nn.MaxPool2d(3, 2),
        nn.AdaptiveAvgPool2d(6), nn.Flatten(),
        nn.Dropout(), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(True),
        nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(True),
        nn.Linear(4096, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(
            convolution(inputs, outputs, stride=stride), nn.BatchNorm2d(outputs), nn.ReLU(True),
            convolution(outputs, outputs), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                convolution(inputs, outputs, 1, stride, 0), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.relu_(self.body(x).add_(self.shortcut(x)))


def resnet18(classes):
    layers = [convolution(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width in (64, 128, 256, 512):
        layers += [Block(inputs, width, 2 if width > 64 else 1), Block(width, width, 1)]
        inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


class Training:
    """A training with these options of DistributedDataParallel; None: no communication."""

    def __init__(self, request, options):
        torch.manual_seed(7)
        model = {"alexnet": alexnet, "resnet18": resnet18}[request["model"]](request["classes"])
        self.parameters = list(model.parameters())
        self.optimizer = torch.optim.SGD(self.parameters, lr=1e-3, momentum=0.9)
        self.set_to_none = request["set_to_none"]
        self.model = model if options is None else DistributedDataParallel(model, **options)
        self.loss = 0.0

    def step(self, images, labels):
        self.optimizer.zero_grad(set_to_none=self.set_to_none)
        loss = F.cross_entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        self.loss = loss.item()

    def weights_hash(self):
        digest = hashlib.blake2b(digest_size=8)
        for weights in self.parameters:
            digest.update(weights.detach().numpy().data)
        return digest.hexdigest()


def timed(work, times):
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return {"seconds": seconds}


class DdpRank:
    def build(self, request):
        random = torch.Generator().manual_seed(100 + RANK)
        shape = (request["batch"], 3, request["image"], request["image"])
        self.trainings = []  # free the old ones first: both may not fit in memory
        self.images = torch.randn(shape, generator=random)
        self.labels = torch.randint(request["classes"], (request["batch"],), generator=random)
        self.trainings = [Training(request, options) for options in request["ways"]]
        return {"parameters": sum(p.numel() for p in self.trainings[0].parameters)}

    def steps(self, request):
        seconds = []
        for way in request["ways"]:
            dist.barrier()
            begin = time.perf_counter()
            self.trainings[way].step(self.images, self.labels)
            seconds.append(time.perf_counter() - begin)
        return {"seconds": seconds}

    def gradients(self):
        return [parameter.grad for parameter in self.trainings[0].parameters]

    def transfer(self, request):
        """Times all-reduces of all gradients in one piece."""
        flat = torch.zeros(sum(gradient.numel() for gradient in self.gradients()))
        dist.all_reduce(flat)
        return timed(lambda: dist.all_reduce(flat), request["times"])

    def copy(self, request):
        """Times copying all gradients into one buffer and back."""
        gradients = self.gradients()
        flat = torch.zeros(sum(gradient.numel() for gradient in gradients))
        slots = flat.split([gradient.numel() for gradient in gradients])

        def there_and_back():
            for gradient, slot in zip(gradients, slots):
                slot.view_as(gradient).copy_(gradient)
            for gradient, slot in zip(gradients, slots):
                gradient.copy_(slot.view_as(gradient))

        there_and_back()
        return timed(there_and_back, request["times"])

    def check(self, request):
        losses = [training.loss for training in self.trainings]
        return {"hashes": [training.weights_hash() for training in self.trainings],
                "losses": [loss if math.isfinite(loss) else None for loss in losses]}


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{FOLDER}/rendezvous", rank=RANK, world_size=RANKS)
    rank = DdpRank()
    driver = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    driver.connect(ADDRESS)
    while message := driver.recv(MOST_MESSAGE):
        request = json.loads(message)
        driver.send(json.dumps(getattr(rank, request["do"])(request)).encode())


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # the driver reports this line
        print(f"contender: {' '.join(str(error).split())}", file=sys.stderr)
        os._exit(1)
