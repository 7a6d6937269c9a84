/**
 * A stream whose first item is read before the answer begins: a database that is away is an ordinary 503, not a broken
 * transfer.
 */
export async function readAhead<T>(source: AsyncGenerator<T>): Promise<AsyncGenerator<T>> {
  return startingWith(await source.next(), source);
}

async function* startingWith<T>(
  first: IteratorResult<T, unknown>,
  rest: AsyncGenerator<T>,
): AsyncGenerator<T> {
  if (first.done) return;
  yield first.value;
  yield* rest;
}
