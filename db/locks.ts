/** Advisory locks, all in one place: two that share a number would wait for each other. */

/** Of the whole installation. */
export const INSTALLATION_LOCKS = {
  /** One process migrates; the others wait and then find nothing to do. */
  migration: 7_241_188_301,
  /** One process changes prices at a time; the others wait and then find nothing left to do. */
  priceChange: 7_241_188_302,
  /** Shared by whoever seals and stores, taken alone by a rotation that drops an old secret key. */
  secrets: 7_241_188_303,
  /** Of those who look whether there is an organization and make the first one. */
  firstOrganization: 7_241_188_304,
} as const;

/** Of one thing by its name: the seeds of its hash tell the kinds apart. */
const SEEDS = {
  gapRunTurn: 5,
  providerAccount: 7,
  providerKeys: 8,
  auditCheckpoint: 14,
  idempotencyKey: 15,
  enforcementRules: 16,
  claimDrafts: 17,
  claimCredits: 18,
  /** Of an organization's provider: imports that end, and connections that are made. */
  firstAccount: 19,
  /** Of an organization's invoices that are read. */
  invoiceExtractions: 20,
  /** Of invoices of a provider with one number. */
  invoiceNumber: 21,
  openRuns: 7_241_188_017,
} as const;

type LockKind = keyof typeof SEEDS;

/** SQL of the lock's number, of the name that is its first parameter. */
export const lockNumber = (kind: LockKind) => `hashtextextended($1, ${SEEDS[kind]})`;

interface Transaction {
  run(sql: string, values: readonly string[]): Promise<number>;
}

/** Waits until nobody else holds the lock of this thing and holds it until the transaction ends. */
export async function lockByName(inside: Transaction, kind: LockKind, name: string): Promise<void> {
  await inside.run(`select pg_advisory_xact_lock(${lockNumber(kind)})`, [name]);
}

/** Something sealed, and the id of the key that opens it. */
export interface Sealed {
  ciphertext: Buffer;
  keyId: string;
}

/** A rotation drops an old key only while nobody seals with it: it takes the same lock for itself alone. */
export async function sealUnderLock(inside: Transaction, seal: () => Sealed): Promise<Sealed> {
  await inside.run(`select pg_advisory_xact_lock_shared(${INSTALLATION_LOCKS.secrets})`, []);
  return seal();
}
