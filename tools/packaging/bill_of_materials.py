"""What packages are made of: every crate with its version, licence and origin, in CycloneDX's format.

cargo-cyclonedx writes one bill for each crate of a workspace, beside its manifest: here of a workspace of links, so
that the project's own directories stay as they are. Those of what is packaged come together in one.
"""

import json
import subprocess
from pathlib import Path

TOOL = "cargo-cyclonedx@0.5.9"
FORMAT = "1.5"
FILE = "bill-of-materials"


def linked(project, place):
    """Lays out the workspace below `place`; its members' manifests are copies, so that files come beside those."""
    told = subprocess.run(["cargo", "metadata", "--no-deps", "--locked", "--format-version", "1"], cwd=project,
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    manifests = {package["name"]: Path(package["manifest_path"]) for package in json.loads(told)["packages"]}
    place.mkdir(parents=True)
    for name in ("Cargo.toml", "Cargo.lock"):
        (place / name).write_bytes((project / name).read_bytes())
    members = {}
    for name, manifest in manifests.items():
        member = place / manifest.parent.relative_to(project)
        member.mkdir(parents=True)
        members[name] = member
        for entry in manifest.parent.iterdir():
            if entry == manifest:
                (member / entry.name).write_bytes(entry.read_bytes())
            else:
                (member / entry.name).symlink_to(entry)
    return members


def of_crates(tool, project, place, crates, target, environment):
    """The bill of each crate, without the name of this machine's directories. Raises `CalledProcessError`."""
    members = linked(project, place)
    subprocess.run([tool, "cyclonedx", "-q", "--all", "--format", "json", "--spec-version", FORMAT, "--target", target,
                    "--override-filename", FILE, "--manifest-path", place / "Cargo.toml"], env=environment, check=True)
    here = place.resolve().as_uri()
    return [json.loads((members[crate] / f"{FILE}.json").read_text().replace(here, "file:///iolab")) for crate in crates]


def of_pages(project):
    """What else is in the pages that are made: the packages that the viewer's script is bundled with."""
    locked = json.loads((project / "tools/viewer/package-lock.json").read_text())["packages"]
    shipped = json.loads((project / "tools/viewer/package.json").read_text())["dependencies"]
    return [{"type": "library", "bom-ref": f"pkg:npm/{name}@{version}", "name": name, "version": version, "scope": "required",
             "licenses": [{"expression": locked[f"node_modules/{name}"]["license"]}], "purl": f"pkg:npm/{name}@{version}"}
            for name, version in shipped.items()]


def joined(bills, version, further=()):
    """One bill of several: of a product with the crates that they are about, and of further components."""
    parts = [bill["metadata"]["component"] for bill in bills]
    product = {"type": "application", "bom-ref": f"iolab@{version}", "name": "iolab", "version": version,
               "licenses": parts[0]["licenses"]}
    components, depends_on = {}, {product["bom-ref"]: {part["bom-ref"] for part in parts}}
    for bill, part in zip(bills, parts):
        for component in [part, *bill["components"]]:
            known = components.setdefault(component["bom-ref"], component)
            if component.get("scope") == "required":
                # What one crate needs to be built only is in another one.
                known["scope"] = "required"
        for entry in bill["dependencies"]:
            depends_on.setdefault(entry["ref"], set()).update(entry.get("dependsOn", []))
    for component in further:
        components[component["bom-ref"]] = component
        depends_on[product["bom-ref"]].add(component["bom-ref"])
        depends_on[component["bom-ref"]] = set()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": FORMAT,
        "version": 1,
        "metadata": {**bills[0]["metadata"], "component": product},
        "components": [components[name] for name in sorted(components)],
        "dependencies": [{"ref": name, "dependsOn": sorted(depends_on[name])} for name in sorted(depends_on)],
    }
