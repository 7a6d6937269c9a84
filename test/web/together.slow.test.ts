import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTab, startBrowser, type Tab, visit } from '../support/browser.js';
import { type ClaimedDemo, startClaimedDemo } from '../support/claimedDemo.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas
type Json = any;

let demo: ClaimedDemo;
let browser: Browser;
let other: { key: string; name: string };
let open: Json[];

beforeAll(async () => {
  [demo, browser] = await Promise.all([startClaimedDemo(), startBrowser()]);
  await takeDecisionsBack();
  const { key } = (await send('keys', { name: 'Mara Lind', role: 'admin' })).body;
  other = { key, name: 'Mara Lind' };
  open = (await read('financial/review-queue?status=open&direction=overcharge')).items.filter(
    (item: Json) => item.kind !== 'policy',
  );
  expect(open.length).toBeGreaterThan(2);
});

afterAll(async () => {
  await browser.close();
  await demo.close();
});

/** The demo of the tests has a dispute over every finding. */
async function takeDecisionsBack(): Promise<void> {
  for (const table of ['dispute_days', 'disputes'])
    await demo.api.database.superuser.query(`delete from ${table} where org_id = $1`, [
      demo.organization.orgId,
    ]);
  await demo.api.database.superuser.query(
    `update findings set status = 'open', decided_at = null, decided_by = null, decision_reason = null where org_id = $1`,
    [demo.organization.orgId],
  );
}

const send = (path: string, body: unknown, key = demo.organization.adminKey) =>
  demo.api.post(`/api/v1/${path}`, body, key);
const read = async (path: string): Promise<Json> =>
  (await demo.api.get(`/api/v1/${path}`, demo.organization.adminKey)).body;
const tab = (): Promise<Tab> => openTab(browser, demo.api.baseUrl, demo.organization.adminKey);
const reason = (page: Page) => page.getByLabel('Reason', { exact: true });

describe('two people decide on the same finding', () => {
  it('in the review queue: the second sees who decided and what is so, and keeps the typed reason', async () => {
    const { page, close } = await tab();
    await visit(page, '/review');
    await page.keyboard.press('d');
    await reason(page).fill('Agreed with the provider in May.');
    const decided = await send(
      `financial/review-queue/${open[0].id}/dismiss`,
      { reason: 'Too small' },
      other.key,
    );
    expect(decided.status).toBe(200);
    await page.getByRole('dialog').getByRole('button', { name: 'Dismiss', exact: true }).click();
    const told = page.getByRole('dialog').getByRole('note');
    await told.filter({ hasText: `Another person decided first: ${other.name}` }).waitFor();
    expect(await told.innerText()).toContain('This finding is now: Dismissed (“Too small”)');
    expect(await reason(page).inputValue()).toBe('Agreed with the provider in May.');
    await close();
  });

  it('on the finding itself, at the same moment', async () => {
    const { id } = open[1];
    const [first, second] = [await tab(), await openTab(browser, demo.api.baseUrl, other.key)];
    for (const { page } of [first, second]) {
      await visit(page, `/findings/${id}`);
      await page.getByRole('button', { name: 'Dismiss …' }).click();
      await reason(page).fill(`Typed in ${page === first.page ? 'one' : 'another'} browser.`);
    }
    const press = ({ page }: Tab) =>
      page.getByRole('dialog').getByRole('button', { name: 'Dismiss', exact: true }).click();
    await Promise.all([press(first), press(second)]);
    await expect
      .poll(async () => (await read(`financial/findings/${id}`)).status, { timeout: 10_000 })
      .toBe('dismissed');
    const { decision_reason: kept } = await read(`financial/findings/${id}`);
    const late = kept === 'Typed in one browser.' ? second : first;
    await late.page.getByRole('dialog').getByText('Another person decided first').waitFor();
    expect(await reason(late.page).inputValue()).not.toBe(kept);
    expect(await reason(late.page).inputValue()).toMatch(/^Typed in/);
    for (const one of [first, second]) await one.close();
  });

  it('by one press of c: the queue says what is so and stays at the finding', async () => {
    const { page, close } = await tab();
    const [item] = (await read('financial/review-queue?status=open&direction=overcharge')).items;
    await visit(page, '/review');
    await send(`financial/review-queue/${item.id}/dismiss`, { reason: 'Expected' }, other.key);
    await page.keyboard.press('c');
    await page.getByText('This finding is now: Dismissed (“Expected”)').waitFor();
    expect((await read(`financial/findings/${item.id}`)).status).toBe('dismissed');
    await close();
  });
});

it('two people move a claim: the second sees its status, and keeps the typed ticket', async () => {
  const [finding] = (await read('financial/review-queue?status=open&direction=overcharge')).items;
  const dispute = (await send(`financial/review-queue/${finding.id}/confirm`, {})).body;
  const { id } = (await send('claims', { dispute_ids: [dispute.id] })).body;
  const { page, close } = await tab();
  await visit(page, `/claims/${id}`);
  await page.getByRole('button', { name: 'Mark as submitted' }).click();
  const ticket = page.getByLabel('The provider’s ticket (optional)');
  await ticket.fill('CASE-4711');
  expect((await send(`claims/${id}/submit`, {}, other.key)).status).toBe(200);
  const moved = await fetch(`${demo.api.baseUrl}/api/v1/claims/${id}/status`, {
    method: 'PATCH',
    headers: { Authorization: `Bearer ${other.key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ status: 'under_review' }),
  });
  expect(moved.status).toBe(200);
  await page.getByRole('dialog').getByRole('button', { name: 'Mark as submitted' }).click();
  await page.getByRole('dialog').getByText('Another person changed this claim first').waitFor();
  expect(await ticket.inputValue()).toBe('CASE-4711');
  await close();
});
