"""Row and recipe speak of the same thing: image, model, precision, hardware."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matrix.checks.case import Case, absent
from matrix.checks.rule import Fault, rule
from matrix.config.fleet import Fleet
from matrix.config.source import Map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.recipes.roles import RecipeView

__all__ = ["recipe_hardware", "recipe_image", "recipe_model", "recipe_precision"]

_FORMS: Final = ("docker://", "dockerd://")


@rule("recipe-image", Case)
def recipe_image(case: Case) -> Iterator[Fault]:
    """The image of the row is the container of the recipe: of its model, its roles, its benchmark and its identity.

    Why: the row says what is published, the recipe what runs. One config was published under an image of ghcr.io while
    its recipe ran another (InferenceX #1734); 11 recipes kept a stale container after their row moved on (#1697).
    Fix: write the image in full in both places; an alias of a cluster file is not an image. A router may have another
    one.
    """
    view = case.view
    if view is None:
        return
    image, recipe = case.config.image, view.recipe
    master = case.said(case.config.node, "image")
    if "container" not in view.model:
        message = f"the row's image is {image}, and the recipe names no model.container."
        yield Fault(message, f"add container: {image}", master, absent(view, "model"), "the model")
    told = set()
    for path, node, key in _containers(view):
        value, place = node[key], recipe.span(node, key)
        if _bare(value) != _bare(image) and place not in told:
            told.add(place)
            message = f"the row's image is {image}, and the recipe's {path} is {value}."
            yield Fault(message, "write one image in both", master, place, path)


@rule("recipe-model", Case)
def recipe_model(case: Case) -> Iterator[Fault]:
    """The model of the row is the one that the recipe loads.

    `hf:ORG/NAME` is compared whole, a folder or an alias by its last part, `identity.model.repo` whole.

    Why: results of one checkpoint under the name of another are worse than none.
    Fix: correct the one that is wrong; a folder on a cluster is named like the model.
    """
    view = case.view
    if view is None:
        return
    model, recipe = case.config.model, view.recipe
    master = case.said(case.config.node, "model")
    path = view.model.get("path")
    if not isinstance(path, str):
        message = f"the row's model is {model}, and the recipe names no model.path."
        yield Fault(message, f"add path: hf:{model}", master, absent(view, "model"), "the model")
    elif not _same_model(model, path):
        message = f"the row's model is {model}, and the recipe loads {path}."
        yield Fault(message, "make the two agree", master, recipe.span(view.model, "path"), "model.path")
    identity = _below(recipe.data, "identity", "model")
    if "repo" in identity and identity["repo"] != model:
        message = f"the row's model is {model}, and the recipe's identity says {identity['repo']}."
        yield Fault(message, "make the two agree", master, recipe.span(identity, "repo"), "identity.model.repo")


@rule("recipe-precision", Case)
def recipe_precision(case: Case) -> Iterator[Fault]:
    """The precision of the row is the one of the recipe.

    Why: points are grouped and compared by it.
    Fix: make the two agree.
    """
    view = case.view
    if view is None or "precision" not in view.model:
        return
    said, precision = view.model["precision"], case.config.precision
    if said != precision:
        message = f"the row's precision is {precision}, and the recipe's is {said}."
        place = view.recipe.span(view.model, "precision")
        yield Fault(message, "make the two agree", case.said(case.config.node, "precision"), place, "model.precision")


@rule("recipe-hardware", Case)
def recipe_hardware(case: Case) -> Iterator[Fault]:
    """The recipe is made for the GPU of the runner, and for as many of them as its nodes have.

    Why: workers are laid out and masked by `gpus_per_node`, flags are chosen for `gpu_type`.
    Fix: name the runner that the recipe is for, or correct the recipe. Where `gpus_per_node` is left out srtctl takes
    the cluster's.
    """
    view = case.view
    if view is None:
        return
    config, resources, recipe = case.config, view.resources, view.recipe
    master = case.said(config.node, "runner")
    labels = {side.worker.hardware or config.runner for side in case.sides()}
    families = sorted({Fleet.family(label) for label in labels})
    kind = resources.get("gpu_type")
    if kind is not None and kind not in families:
        message = f"the runner {config.runner} has {' and '.join(families)}, and the recipe is for {kind}."
        place = recipe.span(resources, "gpu_type")
        yield Fault(message, "make the two agree", master, place, "resources.gpu_type")
    if "gpus_per_node" not in resources:
        return
    for label in sorted(labels):
        known = case.facts.fleet.gpus_per_node(label)
        if len(known) == 1 and known[0] != view.gpus_per_node:
            message = f"a node of {label} has {known[0]} GPUs, and the recipe says {view.gpus_per_node}."
            place = recipe.span(resources, "gpus_per_node")
            yield Fault(message, f"write gpus_per_node: {known[0]}", master, place, "resources.gpus_per_node")


def _containers(view: RecipeView) -> Iterator[tuple[str, Map, str]]:
    """Every place where the recipe names the image that serves or measures."""
    data = view.recipe.data
    homes: list[tuple[str, Map]] = [("model", view.model), ("benchmark", view.benchmark)]
    roles = data.get("roles")
    if isinstance(roles, Map):
        homes += [(f"roles.{name}", node) for name, node in roles.items() if isinstance(node, Map)]
    for path, node in homes:
        for key in ("container", "container_image"):
            if isinstance(node.get(key), str):
                yield f"{path}.{key}", node, key
    identity = _below(data, "identity", "container")
    if isinstance(identity.get("image"), str):
        yield "identity.container.image", identity, "image"


def _bare(image: str) -> str:
    """Without the marks of the tool that pulls it: pyxis separates the registry by ``#``.

    >>> _bare("docker://ghcr.io#org/name:1")
    'ghcr.io/org/name:1'
    """
    for form in _FORMS:
        image = image.removeprefix(form)
    return image.replace("#", "/", 1)


def _same_model(model: str, path: str) -> bool:
    if path.startswith("hf:"):
        return path.removeprefix("hf:") == model
    return path.rstrip("/").rsplit("/", 1)[-1].casefold() == model.rsplit("/", 1)[-1].casefold()


def _below(node: Any, *path: str) -> Map:
    for key in path:
        node = node.get(key) if isinstance(node, Map) else None
    return node if isinstance(node, Map) else Map()
