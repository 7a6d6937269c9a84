import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { OrgDb } from '../../db/orgDb.js';
import { createSignInLink, signInAddress } from '../../usecases/access/sessions.js';
import { openTab, startBrowser } from '../support/browser.js';
import { type ClaimedDemo, startClaimedDemo } from '../support/claimedDemo.js';

/** The first steps of a new user, with the mouse: clicks and seconds are counted. Reading takes the rest of the time. */
const TO_OVERCHARGE = { clicks: 3, seconds: 30 };
const TO_CLAIM = { clicks: 8, seconds: 60 };
const TO_FIRST_CALL = { clicks: 6, seconds: 60 };

let demo: ClaimedDemo;
let browser: Browser;

beforeAll(async () => {
  [demo, browser] = await Promise.all([startClaimedDemo(), startBrowser()]);
  // As after a start with the demo: nothing is decided yet.
  for (const statement of [
    'delete from dispute_days where org_id = $1',
    'delete from disputes where org_id = $1',
    `update findings set status = 'open', decided_at = null, decided_by = null, decision_reason = null where org_id = $1`,
  ])
    await demo.api.database.superuser.query(statement, [demo.organization.orgId]);
});

afterAll(async () => {
  await browser.close();
  await demo.close();
});

interface Journey {
  page: Page;
  click(role: 'button' | 'link' | 'radio', name: string | RegExp, within?: 'dialog'): Promise<void>;
  /** Clicks and seconds so far, printed with the name. */
  end(name: string): { clicks: number; seconds: number };
  close(): Promise<void>;
}

/** Opens the link that the start prints. */
async function start(orgId: string): Promise<Journey> {
  const { page, faults, close } = await openTab(browser, demo.api.baseUrl);
  const started = performance.now();
  let clicks = 0;
  const token = await createSignInLink(
    new OrgDb(demo.api.database.database, orgId),
    { role: 'admin', scopes: null, workspaceId: null },
    {
      actor: { kind: 'command', id: 'test' },
      requestId: 'test',
      nowMicros: BigInt(Date.now()) * 1_000n,
    } as Parameters<typeof createSignInLink>[2],
  );
  await page.goto(signInAddress(demo.api.baseUrl, token));
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  return {
    page,
    async click(role, name, within) {
      const place = within ? page.getByRole(within) : page;
      await place.getByRole(role, { name }).first().click();
      clicks += 1;
    },
    end(name) {
      const seconds = (performance.now() - started) / 1_000;
      process.stdout.write(`${name}: ${clicks} clicks, ${seconds.toFixed(1)} s\n`);
      expect(faults.filter((one) => !one.includes('401'))).toEqual([]);
      return { clicks, seconds };
    },
    close,
  };
}

it('from the printed link to the largest overcharge, and on to a submitted claim with its PDF', async () => {
  const { page, click, end, close } = await start(demo.organization.orgId);
  const { items } = (
    await demo.api.get(
      '/api/v1/financial/review-queue?status=open&direction=overcharge',
      demo.organization.adminKey,
    )
  ).body;
  await click('link', /^Recoverable, to review/);
  await page.getByText(items[0].reason).waitFor();
  const found = end('from the link to the largest overcharge');
  expect(found.clicks).toBeLessThanOrEqual(TO_OVERCHARGE.clicks);
  expect(found.seconds).toBeLessThan(TO_OVERCHARGE.seconds);

  await click('button', /^Confirm/);
  await click('link', 'Claim what is confirmed');
  await click('button', 'Make a claim');
  await click('button', 'Mark as submitted');
  await click('button', 'Mark as submitted', 'dialog');
  await page.getByText('The claim is now: Submitted').waitFor();
  const download = page.waitForEvent('download');
  await click('link', 'PDF');
  expect((await download).suggestedFilename()).toMatch(/\.pdf$/);
  const claimed = end('from the link to a submitted claim with its PDF');
  expect(claimed.clicks - found.clicks).toBeLessThanOrEqual(TO_CLAIM.clicks);
  expect(claimed.seconds - found.seconds).toBeLessThan(TO_CLAIM.seconds);
  await close();
});

it('from nothing to one’s own first call on the screen', async () => {
  const { orgId } = await demo.api.addOrganization();
  const { page, click, end, close } = await start(orgId);
  await click('link', 'Send a first call');
  await click('button', 'Make an ingest key');
  await page.getByRole('region', { name: /^Ingest key/ }).waitFor();
  await click('radio', 'fetch');
  await click('button', /^Copy JavaScript/);
  const example = await page.getByRole('region', { name: 'JavaScript on a server' }).innerText();
  await new Function(`return (async () => { ${example} })()`)();
  await page.getByText('Your call has arrived').waitFor();
  await click('link', 'Open the call');
  await page.getByRole('heading', { name: 'Cost formula' }).waitFor();
  const taken = end('from nothing to the first call');
  expect(taken.clicks).toBeLessThanOrEqual(TO_FIRST_CALL.clicks);
  expect(taken.seconds).toBeLessThan(TO_FIRST_CALL.seconds);
  await close();
});
