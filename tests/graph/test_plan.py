"""The memory plan, on small programs worked by hand."""

import random

import pytest

from roiops.graph.plan import Step, plan


def chain(length, takeover=False):
    steps = [Step([i], [i + 1], {i + 1: i} if takeover else {}) for i in range(length)]
    return steps, dict.fromkeys(range(1, length + 1), 100)


def test_a_chain_needs_two_buffers_whatever_its_length():
    for length in (2, 3, 100):
        steps, sizes = chain(length)
        _, slots = plan(steps, sizes)
        assert slots == [100, 100]


def test_a_chain_in_place_needs_one():
    steps, sizes = chain(100, takeover=True)
    assert plan(steps, sizes)[1] == [100]


def test_an_input_that_is_read_later_is_not_taken_over():
    steps = [Step(["x"], ["a"]), Step(["a"], ["b"], {"b": "a"}), Step(["a", "b"], ["c"])]
    slots, _ = plan(steps, dict.fromkeys("abc", 8))
    assert slots["a"] != slots["b"]


def test_an_input_read_twice_by_its_taker_is_not_taken_over():
    steps = [Step(["x"], ["a"]), Step(["a", "a"], ["b"], {"b": "a"})]
    slots, _ = plan(steps, {"a": 8, "b": 8})
    assert slots["a"] != slots["b"]


def test_one_input_is_taken_over_by_one_output_only():
    steps = [Step(["x"], ["a"]), Step(["a"], ["b", "c"], {"b": "a", "c": "a"}), Step(["b", "c"], ["d"])]
    slots, _ = plan(steps, dict.fromkeys("abcd", 8))
    assert slots["b"] == slots["a"] != slots["c"]


def test_values_of_another_size_are_not_taken_over():
    steps = [Step(["x"], ["a"]), Step(["a"], ["b"], {"b": "a"})]
    slots, _ = plan(steps, {"a": 8, "b": 16})
    assert slots["a"] != slots["b"]


def test_kept_values_keep_their_memory():
    steps, sizes = chain(5, takeover=True)
    slots, _ = plan(steps, sizes, keep={2})
    assert all(slots[i] != slots[2] for i in (3, 4, 5))  # 2 itself may take over 1


def test_the_largest_free_buffer_grows():
    steps = [Step(["x"], ["a"]), Step(["a"], ["b"]), Step(["b"], ["c"])]
    slots, sizes = plan(steps, {"a": 10, "b": 10, "c": 50})
    assert slots["c"] == slots["a"]
    assert sorted(sizes) == [10, 50]


@pytest.mark.parametrize("seed", range(30))
def test_no_two_living_values_ever_share_memory(seed):
    """Random programs, executed: what a step reads must be what was written under that name."""
    rng = random.Random(seed)
    steps, sizes, live = [], {}, ["input"]
    for i in range(60):
        reads = [rng.choice(live[-8:]) for _ in range(rng.randint(1, 3))]
        writes = [f"v{i}.{j}" for j in range(rng.randint(1, 2))]
        takeover = {w: rng.choice(reads) for w in writes if rng.random() < 0.6}
        for w in writes:
            sizes[w] = rng.choice([8, 8, 8, 16, 64])
        steps.append(Step(reads, writes, takeover))
        live += writes
    keep = set(rng.sample(list(sizes), 5))
    slots, slot_sizes = plan(steps, sizes, keep)
    memory = {}
    for step in steps:
        for value in step.reads:
            if value in sizes:
                assert memory[slots[value]] == value, f"{value} was overwritten before it was read"
        for value in step.writes:
            assert slot_sizes[slots[value]] >= sizes[value]
            memory[slots[value]] = value
    for value in keep:
        assert memory[slots[value]] == value
