/** One step of the schema: plain SQL, applied in one transaction, named for good once released. */
export interface Migration {
  name: string;
  up: string;
  down: string;
}
