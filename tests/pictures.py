"""What a picture file must be to count as one."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from PIL import Image


def assert_picture(path: Path, *, least_width: int = 600) -> None:
    """The file is a complete image of its kind: decodable, of a sensible size, and not of one colour."""
    match path.suffix:
        case ".png":
            with Image.open(path) as image:
                image.load()
                assert image.format == "PNG"
                assert image.width >= least_width
                assert image.height >= least_width // 3
                assert len(image.convert("RGB").resize((64, 64)).getcolors(4096) or ()) > 20
        case ".svg":
            root = ElementTree.parse(path).getroot()
            assert root.tag.endswith("svg")
            assert len(list(root.iter())) > 50
        case ".pdf":
            content = path.read_bytes()
            assert content.startswith(b"%PDF-")
            assert content.rstrip().endswith(b"%%EOF")
        case other:
            raise AssertionError(f"no such picture: {other}")
