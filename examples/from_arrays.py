"""A problem from arrays, without a file. Index 0 is the depot."""

import numpy as np

import ndsvrp


def main(seconds: float = 2.0) -> ndsvrp.Result:
    random = np.random.default_rng(1)
    customers = 60
    problem = ndsvrp.Problem(
        name="sixty",
        coordinates=random.uniform(0, 100, (customers + 1, 2)),
        demand=np.concatenate([[0], random.integers(1, 10, customers)]),
        capacity=50,
        prize=np.concatenate([[0], np.where(random.random(customers) < 0.5, 15.0, 0.0)]),  # 0: required
        vehicles=10,
    )
    result = ndsvrp.solve(problem, time=seconds, seed=1)
    print(f"cost {result.cost:.2f}: {result.report.distance:.2f} travelled, {result.report.lost_prizes:.2f} lost")
    for route in result.solution.routes:
        print(*route)
    return result


if __name__ == "__main__":
    main()
