import { BusinessDays } from '../../domain/claims/deadlines.js';
import { parseSettings } from '../../domain/installation/settings.js';
import type { OrgDb } from '../orgDb.js';

/**
 * Of the organizations that were asked for last, by all that they follow from: to make them anew for each move of a claim
 * costs more than the rest of what is computed for it.
 */
const known = new Map<string, BusinessDays>();
const KNOWN_MAX = 50;

/**
 * The business days of the organization, by its settings as they are now. Whoever fixes a deadline of a claim by them holds its
 * row before: a change of the settings then finds it either before or after.
 */
export async function readBusinessDays(orgDb: OrgDb): Promise<BusinessDays> {
  const [row] = await orgDb.rows<{ settings: string }>(
    `select (settings - 'counted_scopes')::text as settings from organizations where id = $1`,
    [orgDb.orgId],
    'business-days',
  );
  if (!row) throw new Error('a claim belongs to an organization that is there');
  const found = known.get(row.settings) ?? new BusinessDays(parseSettings(JSON.parse(row.settings)).settings);
  known.delete(row.settings);
  known.set(row.settings, found);
  const [oldest] = known.keys();
  if (known.size > KNOWN_MAX && oldest !== undefined) known.delete(oldest);
  return found;
}
