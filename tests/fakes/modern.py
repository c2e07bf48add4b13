"""Small forms of the modern workloads, which train in milliseconds."""

from bench_protocol.catalogue.layers import Dense, Embedding, GlobalAveragePool2D, LayerNorm
from bench_protocol.catalogue.modern import resnet_stage, resnet_stem, transformer_blocks
from bench_protocol.catalogue.workloads import SGD, Adam, DataSet, Workload

SMALL_GPT = Workload(
    name="small-gpt",
    data_set=DataSet(
        name="few-characters",
        sample_shape=(12,),
        classes=11,
        train_samples=64,
        test_samples=16,
        tokens=True,
    ),
    layers=(
        Embedding(vocabulary=11, units=16),
        *transformer_blocks(2, units=16, heads=4),
        LayerNorm(),
        Dense(units=11, activation="linear", bias=False),
    ),
    optimizer=Adam(beta_2=0.99, weight_decay=0.1),
    batch_size=8,
    epochs=2,
)
SMALL_RESNET = Workload(
    name="small-resnet",
    data_set=DataSet(
        name="few-pictures",
        sample_shape=(8, 8, 3),
        classes=4,
        train_samples=64,
        test_samples=16,
        patterns=16,
    ),
    layers=(
        *resnet_stem(8),
        *resnet_stage(1, 8, stride=1),
        *resnet_stage(1, 16, stride=2),
        GlobalAveragePool2D(),
        Dense(units=4, activation="linear"),
    ),
    optimizer=SGD(learning_rate=0.02, weight_decay=5e-4),
    batch_size=8,
    epochs=2,
)
