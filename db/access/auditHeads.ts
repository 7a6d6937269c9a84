import type { ChainPoint } from '../../domain/access/auditLog/chain.js';
import type { Database } from '../client.js';
import { unscoped } from '../orgDb.js';

/** Where an organization's chain ends. */
export interface AuditHead extends ChainPoint {
  orgId: string;
}

/** The end of every organization's chain, but for demos: they come and go, and prove nothing to anybody. */
export async function listAuditHeads(database: Database): Promise<AuditHead[]> {
  const rows = await unscoped(database, 'anchor the audit log of every organization', (system) =>
    system.rows<{ org_id: string; seq: number; hash: Buffer }>(
      `select h.org_id, h.seq, h.hash from audit_heads h join organizations o on o.id = h.org_id
       where o.demo_end_day is null order by h.org_id`,
    ),
  );
  return rows.map((row) => ({ orgId: row.org_id, seq: row.seq, hash: row.hash.toString('hex') }));
}
