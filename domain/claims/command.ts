/** A move of a claim that somebody asks for, on its way from the API through the workflow to the row. */
import type { TaxonomyKind } from '../reconciliation/taxonomy.js';
import type { ClaimStatus } from './lifecycle.js';

/** What a move says beside the status; what was not said is null. */
export interface MoveFields {
  /** Why the provider refused, in its words. */
  denialReason: string | null;
  /** What it was, by the provider's word. */
  violationType: TaxonomyKind | null;
  creditIssuedCents: number | null;
  /** The provider's reference. */
  externalTicketId: string | null;
}

export const NO_FIELDS: MoveFields = {
  denialReason: null,
  violationType: null,
  creditIssuedCents: null,
  externalTicketId: null,
};

export interface ClaimCommand {
  /** uuid */
  claimId: string;
  /** The same for every repeat of one request; a command that is recorded is never carried out again. */
  commandId: string;
  to: ClaimStatus;
  /** Of the claim as whoever asks has seen it: the move is refused where it is another one by now. */
  version: number;
  /** By the database's clock, microseconds since 1970: it is refused from then on. */
  notAfterMicros: number;
  fields: MoveFields;
  /** The id of the key that asks. */
  keyId: string;
  requestId: string;
}

/** What the workflow of a claim knows of its row: what it waits by. */
export interface ClaimState {
  version: number;
  status: ClaimStatus;
  /** When the next notice is due, microseconds since 1970; null: none is. */
  nextActionAtMicros: number | null;
}
