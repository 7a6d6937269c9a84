import { BusinessDays } from '../../domain/claims/businessDays.js';
import { parseSettings } from '../../domain/organization/settings.js';
import type { OrgDb } from '../orgDb.js';

/**
 * The business days of the organization, by its settings as they are now. Whoever fixes a deadline of a claim by them holds its
 * row before: a change of the settings then finds it either before or after.
 */
export async function readBusinessDays(orgDb: OrgDb): Promise<BusinessDays> {
  const [row] = await orgDb.rows<{ settings: unknown }>(
    `select settings - 'counted_scopes' as settings from organizations where id = $1`,
    [orgDb.orgId],
    'business-days',
  );
  if (!row) throw new Error('a claim belongs to an organization that is there');
  return new BusinessDays(parseSettings(row.settings).settings);
}
