import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countedBy } from '../../../domain/events/clients.js';
import {
  changedFields,
  changeSettings,
  DEFAULT_SETTINGS,
  describeChange,
  isTimeZone,
  type OrganizationSettings,
  parseSettings,
  storedSettings,
} from '../../../domain/installation/settings.js';

const FIELDS = Object.keys(DEFAULT_SETTINGS) as (keyof OrganizationSettings)[];

const settings: fc.Arbitrary<OrganizationSettings> = fc
  .record({
    dropPayloads: fc.boolean(),
    holidays: fc.array(fc.constantFrom('2026-01-01', '2026-12-25', '2027-01-01')),
    timeZone: fc.constantFrom('UTC', 'Europe/Berlin', 'Asia/Tokyo'),
    countedScopes: fc.array(
      fc.record({ service: fc.constantFrom(null, 'a', 'b'), scope: fc.constantFrom('', 'x', 'y') }),
    ),
    chargebackAllocation: fc.constantFrom('none', 'by_share', 'even'),
  })
  .map((drawn) => changeSettings(DEFAULT_SETTINGS, drawn));

describe('settings', () => {
  it('come back from where they are stored as they were, and defaults are not stored', () => {
    fc.assert(
      fc.property(settings, (one) => {
        const stored = JSON.parse(JSON.stringify(storedSettings(one)));
        expect(parseSettings(stored)).toEqual({ settings: one, unreadable: [] });
        expect(Object.keys(stored).sort()).toEqual(changedFields(DEFAULT_SETTINGS, one).sort());
      }),
    );
    expect(parseSettings({}).settings).toEqual(DEFAULT_SETTINGS);
  });

  it('change in the named fields and in no other; all of them reset are the defaults', () => {
    fc.assert(
      fc.property(settings, settings, fc.subarray(FIELDS), (one, other, names) => {
        const change = Object.fromEntries(names.map((name) => [name, other[name]]));
        const changed = changeSettings(one, change);
        for (const name of FIELDS) expect(changed[name]).toEqual((names.includes(name) ? other : one)[name]);
        expect(describeChange(one, changed).fields).toEqual(changedFields(one, changed));
        const back = Object.fromEntries(FIELDS.map((name) => [name, null]));
        expect(changeSettings(changed, back)).toEqual(DEFAULT_SETTINGS);
      }),
    );
  });

  it.each([
    [null, 'settings'],
    [[], 'settings'],
    ['{}', 'settings'],
    [{ drop_payloads: 'true' }, 'drop_payloads'],
    [{ drop_payloads: null }, 'drop_payloads'],
    [{ holidays: ['tomorrow'] }, 'holidays'],
    [{ holidays: '2026-01-01' }, 'holidays'],
    [{ time_zone: '' }, 'time_zone'],
    [{ counted_scopes: [{ scope: 'a' }] }, 'counted_scopes'],
    [{ counted_scopes: [{ service: 'a', scope: 'b', more: 1 }] }, 'counted_scopes'],
    [{ dropPayloads: true }, 'dropPayloads'],
    [{ chargeback_allocation: 'all' }, 'chargeback_allocation'],
    [{ later: 1 }, 'later'],
  ])('stored as %j are named and take their default without a guess', (stored, field) => {
    expect(parseSettings(stored)).toEqual({ settings: DEFAULT_SETTINGS, unreadable: [field] });
  });

  it('that cannot be read take nothing from those that can', () => {
    expect(parseSettings({ drop_payloads: true, holidays: [5] })).toEqual({
      settings: { ...DEFAULT_SETTINGS, dropPayloads: true },
      unreadable: ['holidays'],
    });
  });

  it('know the names of the IANA database and nothing else', () => {
    for (const zone of Intl.supportedValuesOf('timeZone')) expect(isTimeZone(zone), zone).toBe(true);
    for (const zone of ['UTC', 'Etc/GMT+5', 'Asia/Kolkata', 'America/Argentina/Buenos_Aires'])
      expect(isTimeZone(zone), zone).toBe(true);
    for (const zone of [
      '',
      'utc',
      '+01:00',
      'Europe',
      'Europe/Nowhere',
      'europe/berlin',
      'Europe/BERLIN',
      'Etc/gmt+5',
      'UTC; drop',
      'Europe/Berlin ',
    ])
      expect(isTimeZone(zone), zone).toBe(false);
  });
});

describe('a call counts', () => {
  const of = (serviceName: string, scopeName: string) => ({ serviceName, scopeName });

  it('whatever its scope, where its service is not named', () => {
    const counts = countedBy([{ service: 'checkout', scope: 'a' }]);
    expect([of('search', 'a'), of('search', 'b'), of('', 'b')].map(counts)).toEqual([true, true, true]);
  });

  it('by the scopes that are named for its service, and by no other', () => {
    const counts = countedBy([
      { service: 'checkout', scope: 'a' },
      { service: 'checkout', scope: '' },
      { service: null, scope: 'b' },
    ]);
    const calls = [of('checkout', 'a'), of('checkout', ''), of('checkout', 'b'), of('', 'b'), of('', 'a')];
    expect(calls.map(counts)).toEqual([true, true, false, true, false]);
  });
});
