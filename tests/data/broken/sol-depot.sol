Route #1: 1 2
Route #2: 0 3 0
Route #3: 4
Cost: 32
