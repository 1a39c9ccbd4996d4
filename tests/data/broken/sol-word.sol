Route #1: 1 two
Route #2: 3
Route #3: 4
Cost: 32
