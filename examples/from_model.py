"""A problem built piece by piece: names, time windows, a limited fleet."""

import ndsvrp

STOPS = [
    # name, x, y, demand, window, minutes of service
    ("bakery", 12, 31, 4, (0, 90), 10),
    ("school", -20, 14, 9, (60, 120), 15),
    ("office", 8, -25, 3, None, 5),
    ("museum", -15, -18, 6, (30, 200), 10),
    ("market", 25, 6, 8, (0, 60), 20),
]


def main(seconds: float = 1.0) -> ndsvrp.Result:
    model = ndsvrp.Model("town")
    model.add_depot(x=0, y=0, window=(0, 240))
    for name, x, y, demand, window, service in STOPS:
        model.add_customer(x, y, name=name, demand=demand, window=window, service=service)
    model.set_fleet(vehicles=3, capacity=20)
    result = model.solve(time=seconds, seed=1)
    for route in result.solution.routes:
        print(*(result.problem.name_of(customer) for customer in route), sep=" → ")
    return result


if __name__ == "__main__":
    main()
