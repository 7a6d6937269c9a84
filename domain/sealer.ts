/** What sealed bytes are for: they open for nothing else. */
export interface SealBinding {
  orgId: string;
  /** Whose they are within the organization, e.g. a connection's id. */
  subjectId: string;
  /** What they are, e.g. `billing-credentials`. */
  purpose: string;
}

/** Seals texts under the instance's key and opens them again: platform/secretKeys.ts. */
export interface Sealer {
  seal(text: string, binding: SealBinding): { ciphertext: Buffer; keyId: string };
  /** Undefined when no key at hand opens it, or it is for something else. */
  open(sealed: Buffer, binding: SealBinding): string | undefined;
}
