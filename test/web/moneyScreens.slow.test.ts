import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openTab, startBrowser, type Tab, visit } from '../support/browser.js';
import { type ClaimedDemo, startClaimedDemo } from '../support/claimedDemo.js';

let demo: ClaimedDemo;
let browser: Browser;

beforeAll(async () => {
  [demo, browser] = await Promise.all([startClaimedDemo(), startBrowser()]);
});

afterAll(async () => {
  await browser.close();
  await demo.close();
});

const open = (): Promise<Tab> => openTab(browser, demo.api.baseUrl, demo.organization.adminKey);
const read = async (path: string) => (await demo.api.get(path, demo.organization.adminKey)).body;
const usd = (value: number) =>
  `$${value.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
const footOf = (page: Page, caption: string) =>
  page.getByRole('region', { name: caption, exact: true }).locator('tfoot td').allInnerTexts();

it('the overview shows the six amounts of the API and their total', async () => {
  const { page, faults, close } = await open();
  const summary = await read('/api/v1/financial/summary');
  await visit(page, '/');
  const amounts = page.getByRole('region', { name: 'Amounts of all days so far' });
  await amounts.waitFor();
  const shown = await amounts.locator('strong').allInnerTexts();
  expect(shown.map((text) => text.replace('~', ''))).toEqual([
    usd(summary.total_financial_opportunity_usd),
    usd(summary.recoverable_confirmed_usd),
    usd(summary.recoverable_review_usd),
    usd(summary.prevented_usd),
    summary.preventable_modeled_as_of === null ? '–' : usd(summary.preventable_modeled_usd),
    usd(summary.unexplained_critical_usd),
    usd(summary.unexplained_review_usd),
  ]);
  expect(await amounts.innerText()).toContain('✓ Sum of the 6 amounts');
  expect(faults).toEqual([]);
  await close();
});

it('the key t shows a chart as a table whose columns sum to the amounts of the API', async () => {
  const { page, close } = await open();
  const to = new Date().toISOString().slice(0, 10);
  const from = new Date(Date.parse(to) - 89 * 86_400_000).toISOString().slice(0, 10);
  const usage = await read(`/api/v1/usage/summary?group_by=team&from=${from}&to=${to}`);
  await visit(page, `/usage?group_by=team&from=${from}&to=${to}`);
  await page.keyboard.press('t');
  const [rows, ...sums] = await footOf(page, 'Cost by day and team');
  expect(rows).toBe('Sum of 90 rows');
  const amounts = usage.breakdown.map(({ cost_usd }: { cost_usd: number }) => usd(cost_usd));
  expect(amounts.length).toBeGreaterThan(1);
  expect(sums.sort()).toEqual(amounts.sort());
  await page.keyboard.press('t');
  await page.getByRole('region', { name: 'Cost by day and team' }).waitFor({ state: 'detached' });
  await close();
});

it('the keys [ and ] move the period, which the address keeps', async () => {
  const { page, close } = await open();
  await visit(page, '/usage?from=2026-03-08&to=2026-03-14');
  await page.keyboard.press('[');
  await page.waitForURL(/from=2026-03-01&to=2026-03-07/);
  await page.keyboard.press(']');
  await page.waitForURL(/from=2026-03-08&to=2026-03-14/);
  await close();
});

it('a call opens by keyboard with the sum behind its cost, and at an address of its own', async () => {
  const { page, faults, close } = await open();
  const [call] = (await read('/api/v1/events?limit=1')).events;
  const cost = await read(`/api/v1/events/${call.id}/cost`);
  await visit(page, '/events?period=90d');
  await page.getByRole('region', { name: 'Calls', exact: true }).focus();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  const drawer = page.getByRole('dialog', { name: 'Call' });
  await drawer.getByRole('heading', { name: 'Cost formula' }).waitFor();
  expect(page.url()).toContain(`event=${call.id}`);
  expect(await drawer.locator('tfoot').innerText()).toContain(`$${cost.computed.total}`);
  await page.keyboard.press('Escape');
  await drawer.waitFor({ state: 'detached' });
  await visit(page, `/events/${call.id}`);
  await page.getByRole('button', { name: 'Show payload' }).click();
  await page.getByRole('button', { name: 'Hide payload' }).waitFor();
  expect(faults).toEqual([]);
  await close();
});

it('the audit shows the difference of the API and the lines that sum to it', async () => {
  const { page, close } = await open();
  const { totals, differences } = await read('/api/v1/reconciliation/audit?provider=openai');
  await visit(page, '/audit');
  const foot = await footOf(page, 'Charges at another than the agreed rate');
  expect(foot[0]).toBe(`Sum of ${differences.length} ${differences.length === 1 ? 'row' : 'rows'}`);
  expect(foot[2]).toBe(usd(totals.difference_usd));
  await close();
});

it('chargeback shows cents that sum to its total, and calls without a label', async () => {
  const { page, close } = await open();
  await visit(page, '/chargeback?period=90d');
  const table = page.getByRole('region', { name: 'Cost by team', exact: true });
  const cents = (text: string) => Number(text.replace(/[^0-9]/g, ''));
  const booked = await table.locator('tbody td:nth-child(2)').allInnerTexts();
  const [label, total = ''] = await footOf(page, 'Cost by team');
  expect(label).toContain('✓');
  expect(booked.reduce((sum, text) => sum + cents(text), 0)).toBe(cents(total));
  expect(await table.innerText()).toContain('<unset>');
  await page.getByRole('note').filter({ hasText: 'have no team' }).waitFor();
  await close();
});

it('the overview of an organization without bills and calls offers three ways on', async () => {
  const { adminKey } = await demo.api.addOrganization();
  const { page, close } = await openTab(browser, demo.api.baseUrl, adminKey);
  await visit(page, '/');
  await page.getByRole('link', { name: 'Connect a provider' }).waitFor();
  expect(await page.locator('h2').allInnerTexts()).toEqual([
    '1. Connect a provider',
    '2. Send a first call',
    '3. Look at the demo',
  ]);
  await close();
});
