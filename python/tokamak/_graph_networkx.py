"""Graphs as networkx graphs; networkx is imported here only."""

from tokamak._graph_objects import GraphError


def _instructions(graph, digraph):
    for instr in graph.instructions:
        digraph.add_node(instr.name, op=instr.op, type=instr.type, line=instr.line, scope=instr.scope, computation=instr.computation.name,
                         kernels=[kernel.index for kernel in instr.kernels])  # fmt: skip
    for instr in graph.instructions:
        for position, operand in enumerate(instr.operands):
            digraph.add_edge(operand.name, instr.name, operand=position)


def _kernels(graph, digraph):
    for kernel in graph.kernels:
        digraph.add_node(kernel.index, name=kernel.name, generator=kernel.generator, predicted_us=kernel.predicted_us,
                         reads_bytes=kernel.reads_bytes, writes_bytes=kernel.writes_bytes,
                         instructions=[instr.name for instr in kernel.instructions])  # fmt: skip
    for kernel in graph.kernels:
        for array in kernel.reads:
            if array.producer is None:
                continue
            edge = (array.producer.index, kernel.index)
            if not digraph.has_edge(*edge):
                digraph.add_edge(*edge, bytes=0, arrays=[])
            digraph.edges[edge]["bytes"] += array.bytes
            digraph.edges[edge]["arrays"].append(array.name)


def export(graph, kind):
    import networkx

    fill = {"instructions": _instructions, "kernels": _kernels}.get(kind)
    if fill is None:
        raise GraphError(f"to_networkx: the kind is 'instructions' or 'kernels', not {kind!r}")
    digraph = networkx.DiGraph(name=graph.name)
    fill(graph, digraph)
    return digraph
