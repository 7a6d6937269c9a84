/** SQLSTATE of a lost deadlock and of a lost serialization race: the transaction is undone, and succeeds when repeated. */
const CONFLICT_CODES = new Set(['40P01', '40001']);
const REPEATS_MAX = 5;

/** Runs a transaction again when it lost against another one. */
export async function repeatOnConflict<T>(work: () => Promise<T>, repeatsMax = REPEATS_MAX): Promise<T> {
  for (let repeat = 0; ; repeat += 1) {
    try {
      return await work();
    } catch (error) {
      const cause = error instanceof Error ? (error.cause as { code?: string } | undefined) : undefined;
      if (repeat >= repeatsMax || !CONFLICT_CODES.has(cause?.code ?? '')) throw error;
    }
  }
}
