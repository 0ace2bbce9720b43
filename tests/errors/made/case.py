"""Shared by all inputs: how a case is registered and how its files are written."""
DEEP = 100_000
MANY = 1_000_000

CASES = {}  # name -> function(folder) giving (words, expected codes, expected location or None)


def case(function):
    CASES[function.__name__] = function
    return function


def write(folder, name, *parts):
    """Parts are text or (count, text)."""
    path = folder / name
    with open(path, "wb") as file:
        for part in parts:
            count, text = part if isinstance(part, tuple) else (1, part)
            data = text.encode() if isinstance(text, str) else text
            block = max(1, min(count, (1 << 20) // max(1, len(data))))
            for _ in range(count // block):
                file.write(data * block)
            file.write(data * (count % block))
    return str(path)


def hlo(folder, *parts, name="x.hlo"):
    return write(folder, name, *parts)
