import { getOrganization } from '../../db/installation/organizations.js';
import type { OrgDb } from '../../db/orgDb.js';
import type { ReportBranding } from '../../domain/reports/reportDocument.js';

const BRAND_COLOR = '#1F4FD8';

/** How the organization's reports look; `host` is that of this installation. */
export async function getBranding(orgDb: OrgDb, host: string): Promise<ReportBranding> {
  const { name } = await getOrganization(orgDb);
  return { orgName: name, brandColor: BRAND_COLOR, footerText: `${name} · ${host}` };
}
