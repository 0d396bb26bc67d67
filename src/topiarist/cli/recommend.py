"""`topiarist recommend`: widths and a depth for a saved network, from its weights and training samples."""

from topiarist.cli.loading import load_network, task_for
from topiarist.cli.options import AsJson, DataLocation, Device, Group, Into, ModelFile, Seed, Target
from topiarist.cli.output import emit, say, waiting


def recommend_command(
    model: ModelFile,
    data: DataLocation,
    target: Target = None,
    group: Group = None,
    into: Into = None,
    device: Device = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Recommend widths and a depth for a network, from its weights and training samples.

    Example: topiarist recommend digits.safetensors digits

    Nothing is changed or written.
    """
    from topiarist.methods.job import make_job
    from topiarist.methods.surgeon.surgeon import looked_at
    from topiarist.surgery import recommend

    network = load_network(model, into, device)
    samples = task_for(network, data, target=target, group=group)
    with waiting(f"looking at {model.name}"):
        known, example = looked_at(network, samples, seed), make_job(network, samples, seed=seed).example_input
        advice = recommend(
            network, example, calibration=known.calibration, labels=known.labels, task=known.task, seed=seed
        )
        record, text = advice.to_record(), str(advice)
    result = {"model": str(model), "data": samples.name, "samples": len(advice.samples), **record}
    emit(result, as_json=as_json, show=lambda _: say(text))
