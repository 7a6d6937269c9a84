/**
 * Ends the process on Ctrl-C and SIGTERM by way of its exit handlers, which remove what is half-written. Everything
 * else needs no care: a connection that closes ends a backup in Postgres, and rolls an import back.
 */
export function endOnSignal(): void {
  process.once('SIGINT', () => process.exit(130));
  process.once('SIGTERM', () => process.exit(143));
}
