import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTab, seriousFindings, startBrowser, type Tab, visit } from '../support/browser.js';
import { type ClaimedDemo, startClaimedDemo } from '../support/claimedDemo.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas
type Json = any;

let demo: ClaimedDemo;
let browser: Browser;

beforeAll(async () => {
  [demo, browser] = await Promise.all([startClaimedDemo(), startBrowser()]);
});

afterAll(async () => {
  await browser.close();
  await demo.close();
});

const read = async (address: string): Promise<Json> =>
  (await demo.api.get(`/api/v1/${address}`, demo.organization.adminKey)).body;

const open = (): Promise<Tab> => openTab(browser, demo.api.baseUrl, demo.organization.adminKey);

/** `$1,234.50` of an amount of whole cents. */
const dollars = (cents: number) =>
  (cents / 100).toLocaleString('en-US', { style: 'currency', currency: 'USD' });

/** The shown amounts of a row, without its name. One in parentheses is below zero. */
async function centsOfRow(row: Locator): Promise<number[]> {
  const texts = await row.locator('th, td').allInnerTexts();
  return texts
    .slice(1)
    .map((text) => Number(text.replace(/[^\d.]/g, '').replace('.', '')) * (text.includes('(') ? -1 : 1));
}

const focused = (page: Page) =>
  page.evaluate<string>('document.activeElement?.getAttribute("aria-label") ?? ""');

describe('claims', () => {
  it('are made of chosen disputes, and their detail shows the amounts of the API', async () => {
    const { page, faults, close } = await open();
    const dispute = demo.disputes.find((one) => one.claim_id === null && one.status === 'open');
    await visit(page, `/disputes?chosen=${dispute.id}`);
    await page.getByText('1 chosen').waitFor();
    await page.getByRole('button', { name: 'Make a claim' }).click();
    await page.waitForURL(/\/claims\/clm_/);
    const id = page.url().split('/').at(-1);
    const claim = await read(`claims/${id}`);
    await page.getByText(dollars(claim.total_recoverable_cents), { exact: true }).first().waitFor();
    expect(await page.getByRole('link', { name: 'PDF' }).getAttribute('href')).toBe(
      `/api/v1/claims/${id}/evidence.pdf`,
    );
    expect(await seriousFindings(page)).toEqual([]);

    await page.getByRole('button', { name: 'Snooze' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Snooze' }).click();
    await page.getByText('Reminders are snoozed until').waitFor();
    expect((await read(`claims/${id}`)).snoozed_until).not.toBeNull();

    await visit(page, '/claims?view=board');
    await page
      .getByRole('button', { name: /^Move the claim on/ })
      .first()
      .focus();
    await page.keyboard.press('Enter');
    await page.getByRole('menuitem', { name: 'Mark as submitted' }).waitFor();
    expect(faults).toEqual([]);
    await close();
  });

  it('are shown to auditors without a button that the API would refuse', async () => {
    const { key } = (
      await demo.api.post('/api/v1/keys', { name: 'auditor', role: 'auditor' }, demo.organization.adminKey)
    ).body;
    const { claims } = await read('claims');
    const { page, close } = await openTab(browser, demo.api.baseUrl, key);
    await visit(page, `/claims/${claims[0].id}`);
    await page.getByRole('heading', { name: 'History' }).waitFor();
    for (const name of ['Mark as submitted', 'Snooze', 'Merge', 'Discard'])
      expect(await page.getByRole('button', { name }).count(), name).toBe(0);
    await close();
  });
});

describe('disputes', () => {
  it('state the resolution of another person and keep what was typed', async () => {
    const { page, close } = await open();
    const { disputes } = await read('financial/disputes?status=open');
    const dispute = disputes.find((one: Json) => one.claim_id === null);
    await visit(page, `/disputes?id=${dispute.id}`);
    await page.getByRole('button', { name: 'Resolve …' }).click();
    await page.getByLabel('Notes (optional)').fill('Seen with the provider.');
    await demo.api.post(
      `/api/v1/financial/disputes/${dispute.id}`,
      { resolution: 'written_off' },
      demo.organization.adminKey,
    );
    await page.getByRole('button', { name: 'Resolve', exact: true }).click();
    await page.getByText('Another person resolved it first: Written off').waitFor();
    expect(await page.getByLabel('Notes (optional)').inputValue()).toBe('Seen with the provider.');
    await close();
  });
});

describe('the review queue', () => {
  it('shows the sum of the API and moves by keyboard', async () => {
    const status = 'confirmed';
    const { page, faults, close } = await open();
    const queue = await read(`financial/review-queue?status=${status}`);
    await visit(page, `/review?status=${status}`);
    await page
      .getByRole('status')
      .filter({ hasText: dollars(Math.round(queue.total_impact_usd * 100)) })
      .waitFor();
    await page.keyboard.press('j');
    expect(await page.locator('[aria-label="Review items"] [aria-current]').count()).toBe(1);
    expect(await seriousFindings(page)).toEqual([]);
    expect(faults).toEqual([]);
    await close();
  });
});

describe('the gap explorer', () => {
  it('is an ARIA grid with one tab stop that arrows, Home, End and Enter work', async () => {
    const { page, faults, close } = await open();
    await visit(page, '/gaps');
    const { flagged, total } = await read('reconciliation/gap-explorer?period=90d&limit=1');
    await page.getByRole('heading', { name: `${flagged} flagged of ${total} buckets` }).waitFor();
    const stops = page.locator('[role="gridcell"][tabindex="0"]');
    expect(await stops.count()).toBe(1);
    await stops.focus();
    const start = await focused(page);
    expect(start).toContain('flagged');
    await page.keyboard.press('ArrowLeft');
    expect(await focused(page)).not.toBe(start);
    await page.keyboard.press('ArrowRight');
    expect(await focused(page)).toBe(start);
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').getByText('Billed − observed').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await focused(page)).toBe(start);
    await page.keyboard.press('t');
    await page.getByRole('table', { name: 'Buckets' }).waitFor();
    expect(faults).toEqual([]);
    await close();
  });
});

describe('the statement of a month', () => {
  it('shows three sums that foot and the totals of the API', async () => {
    const { page, faults, close } = await open();
    const { periods } = await read('periods');
    const [, { period }] = periods;
    const { total } = await read(`reconciliation/statement?period=${period}`);
    await visit(page, `/statement?period=${period}`);
    expect(await page.getByText(/rows foot$/).count()).toBe(3);
    const foot = page.getByRole('table', { name: 'Invoice' }).locator('tfoot');
    expect(await foot.innerText()).toContain(
      total.invoice_total_usd.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 }),
    );
    for (const name of ['Usage', 'Invoice', 'Verification']) {
      const table = page.getByRole('table', { name, exact: true });
      const rows = await table.locator('tbody tr').all();
      const shown = await Promise.all(rows.map(centsOfRow));
      const added = (await centsOfRow(table.locator('tfoot tr'))).map((_, column) =>
        shown.reduce((sum, row) => sum + (row[column] ?? 0), 0),
      );
      expect(added, name).toEqual(await centsOfRow(table.locator('tfoot tr')));
    }
    expect(faults).toEqual([]);
    await close();
  });

  it('asks before a month is closed, and shows it as closed', async () => {
    const { page, close } = await open();
    const { periods } = await read('periods');
    const { period } = periods[1];
    await visit(page, '/periods');
    await page.getByRole('button', { name: `Close ${period}` }).click();
    await page.getByRole('dialog').getByText('cannot be opened again').waitFor();
    await page
      .getByRole('dialog')
      .getByRole('button', { name: `Close ${period}` })
      .click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByText('Closed', { exact: true }).nth(1).waitFor();
    expect((await read(`periods/${period}`)).status).toBe('closed');
    await close();
  });
});
