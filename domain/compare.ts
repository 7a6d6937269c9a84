/** Ascending order, for `sort`. Texts are compared by code unit, so that the order is the same on every machine. */
export function compare<T extends string | bigint | number>(one: T, other: T): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
