"""Hooks of mkdocs.yml: pages that lie outside docs/, the Python reference, the examples, links to the source."""

import ast
import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Pages of the root, which stand beside those of docs/.
OF_ROOT = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)

# The reference, in the order in which one meets the functions.
REFERENCE = (
    ("Formats", ("cast", "quantize", "dequantize", "Blocks", "Codes")),
    ("Products", ("matmul", "conv", "run", "plan", "plan_of", "CallPlan")),
    ("Functions of every element", ("function", "functions")),
    ("What is said of results", ("explain", "compare", "verify", "probe", "Explanation", "Comparison", "Verification", "Probe")),
    ("Recorded tensors", ("trace", "Trace", "recipes.compare", "recipes.RecipeComparison", "scaler.replay", "scaler.schedule", "scaler.Replay")),
    ("Files", ("load", "Tensors")),
    ("What there is", ("formats", "instructions", "machines", "plans", "engines")),
    ("Tests", ("testing.assert_equal_bits",)),
    ("PyTorch", ("torch.record", "torch.machine", "torch.explain")),
    ("JAX", ("jax.matmul",)),
    ("Results", ("reports.Report", "reports.Picture", "tables.Table", "tables.Record", "Error")),
)


def _module_of(name):
    """Where a name of the package is defined, as mkdocstrings takes it."""
    package = ROOT / "tools/python/guardbit"
    if "." in name:
        return f"guardbit.{name}"
    for node in ast.parse((package / "__init__.py").read_text()).body:
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            return f"guardbit.{node.module}.{name}" if node.module else f"guardbit.{name}"
    raise ValueError(f"guardbit has no {name}")


def reference():
    """The page of functions and classes, by their docstrings."""
    parts = ["# Reference\n\nEvery name of the package. [`import guardbit`](PYTHON.md) is the overview.\n"]
    for title, names in REFERENCE:
        parts.append(f"## {title}\n")
        for name in names:
            parts.append(f"::: {_module_of(name)}\n    options:\n      heading: guardbit.{name}\n      toc_label: {name}\n")
    return "\n".join(parts)


# Whose threads examples answer, by the names that they use.
REPOSITORIES = {"pytorch": "pytorch/pytorch", "ao": "pytorch/ao", "torchao": "pytorch/ao", "ml_dtypes": "jax-ml/ml_dtypes",
                "flash-attention": "Dao-AILab/flash-attention", "aiter": "ROCm/aiter", "mlx": "ml-explore/mlx"}


def _with_threads(text):
    """pytorch#180333 as a link to that thread."""
    names = "|".join(REPOSITORIES)
    return re.sub(rf"\b({names})#(\d+)", lambda x: f"[{x[0]}](https://github.com/{REPOSITORIES[x[1]]}/issues/{x[2]})", text)


def examples():
    """The page of docs/examples: of each program its first comment, itself, what it prints."""
    parts = [(ROOT / "docs/examples/README.md").read_text()]
    for path in sorted((ROOT / "docs/examples").glob("*.py")):
        text = path.read_text()
        title, _, rest = ast.get_docstring(ast.parse(text)).partition("\n")
        code = text.split('"""', 2)[2].strip()
        parts.append(f"## {title.rstrip('.')}\n\n{_with_threads(rest.strip())}\n\n```python title=\"docs/examples/{path.name}\"\n{code}\n```\n\n"
                     f"```{{ .text .output }}\n{path.with_suffix('.txt').read_text().rstrip()}\n```\n")
    return "\n".join(parts)


def on_files(files, config):
    from mkdocs.structure.files import File

    for name in OF_ROOT:
        files.append(File.generated(config, name, content=(ROOT / name).read_text()))
    files.append(File.generated(config, "reference.md", content=reference()))
    files.append(File.generated(config, "examples.md", content=examples()))
    return files


def _targets(source):
    """From the page's place in the tree: a link's target as the site has it, or None for what the site does not have."""
    folder = "." if source in OF_ROOT else "docs"
    here = posixpath.dirname(posixpath.join(folder, source))

    def target(path):
        place = posixpath.normpath(posixpath.join(here, path))
        if not (ROOT / place).exists():
            return path  # MkDocs says that it is not there
        name = place[len("docs/"):] if place.startswith("docs/") else place if place in OF_ROOT else None
        name = {"README.md": "README.md"}.get(place, name) if folder != "." else name
        if name == "examples/README.md" or (name or "").startswith("examples/"):
            name = "examples.md"
        return None if name is None or (ROOT / place).is_dir() else posixpath.relpath(name, posixpath.dirname(source) or ".")

    return target


def _title(files, source, target):
    """The first heading of the page that a link leads to."""
    file = files.get_file_from_path(posixpath.normpath(posixpath.join(posixpath.dirname(source), target)))
    heading = re.search(r"^# (.+)$", file.content_string, re.MULTILINE) if file is not None and file.is_documentation_page() else None
    return heading[1] if heading else None


def on_page_markdown(markdown, page, config, files):
    """Links to files outside the site become their names, links to pages named by their files get the pages' titles; blocks of
    output get their look."""
    source = page.file.src_uri
    target = _targets(source)

    def link(found):
        text, path, anchor = found[1], found[2], found[3] or ""
        if "://" in path or path.startswith("mailto:"):
            return found[0]
        to = target(path)
        if to is None:
            return text
        if text == posixpath.basename(path):
            text = _title(files, source, to) or text
        return f"[{text}]({to}{anchor})"

    parts, at = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(link, markdown[at:fence.start()]), fence[0].replace("```text", "```{ .text .output }", 1)]
        at = fence.end()
    return "".join(parts) + LINK.sub(link, markdown[at:])
