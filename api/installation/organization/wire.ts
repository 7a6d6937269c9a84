import { z } from 'zod';
import type { OrganizationProfile } from '../../../db/installation/organizations.js';
import { LABEL_CHARS_MAX } from '../../../domain/events/event.js';
import { stripText } from '../../../domain/events/jsonValues.js';
import { publicId } from '../../../domain/ids.js';
import {
  COUNTED_SCOPES_MAX,
  HOLIDAYS_MAX,
  isTimeZone,
  type OrganizationSettings,
  type SettingsChange,
} from '../../../domain/installation/settings.js';
import { isoFromMicros, parseInstant } from '../../../domain/period.js';
import { ALLOCATIONS } from '../../../domain/usage/chargeback.js';
import { nameField } from '../../query.js';

export const ORGANIZATION_PATH = '/api/v1/organization';
export const SETTINGS_PATH = `${ORGANIZATION_PATH}/settings`;

/**
 * A source's name as ingest stores it. Text that ingest would change is refused, because it could never match a call.
 */
const sourceName = (min: number) =>
  z
    .string()
    .min(min, { error: 'must not be empty' })
    .max(LABEL_CHARS_MAX, { error: `must have at most ${LABEL_CHARS_MAX} characters` })
    .refine((text) => stripText(text) === text, {
      error: 'must be printable ASCII, as ingest health shows it',
    });

const day = z
  .string()
  .refine((text) => parseInstant(text)?.dateOnly === true && text.length === 10, {
    error: 'must be a day of the calendar, for example 2026-12-25',
  })
  .meta({ format: 'date' });

const countedScopeBody = z.strictObject({
  service: sourceName(1).nullable().default(null).meta({
    description: 'The service (OTel service.name); null or absent: calls that name no service',
  }),
  scope: sourceName(0).meta({
    description: 'Its instrumentation scope that counts, as ingest health names it',
  }),
});

export const settingsBody = z
  .strictObject({
    drop_payloads: z.boolean().nullable().optional(),
    holidays: z
      .array(day)
      .max(HOLIDAYS_MAX, { error: `must have at most ${HOLIDAYS_MAX} days` })
      .nullable()
      .optional(),
    time_zone: z
      .string()
      .max(64)
      .refine(isTimeZone, {
        error: 'must be a name of the IANA time zone database, for example Europe/Berlin',
      })
      .nullable()
      .optional(),
    counted_scopes: z
      .array(countedScopeBody)
      .max(COUNTED_SCOPES_MAX, { error: `must have at most ${COUNTED_SCOPES_MAX} entries` })
      .nullable()
      .optional(),
    chargeback_allocation: z
      .enum(ALLOCATIONS, { error: `must be one of ${ALLOCATIONS.join(', ')}` })
      .nullable()
      .optional(),
  })
  .meta({
    id: 'SettingsChanges',
    description:
      'Absent fields keep their values; null resets a field to its default; a list is replaced as a whole',
  });

export const organizationBody = z
  .strictObject({ name: nameField.optional() })
  .meta({ id: 'OrganizationChanges' });

export const settingsSchema = z
  .strictObject({
    drop_payloads: z.boolean().meta({
      description:
        'Payloads, tool inputs and outputs and the `_service` block are not stored, from the next event on',
    }),
    holidays: z.array(z.string()).meta({ description: 'Public holidays, ascending' }),
    time_zone: z
      .string()
      .meta({ description: 'For what is shown or scheduled in local time; totals are by UTC' }),
    counted_scopes: z.array(z.strictObject({ service: z.string().nullable(), scope: z.string() })).meta({
      description:
        'A service that is named here counts by the scopes named for it alone, from the next event on; every other counts whole',
    }),
    chargeback_allocation: z.enum(ALLOCATIONS).meta({
      description:
        'How chargeback shares out spend that belongs to no bucket: not at all, by what the buckets cost, or to each the same',
    }),
  })
  .meta({ id: 'OrganizationSettings' });

export const organizationSchema = z
  .strictObject({ id: z.string(), name: z.string(), created_at: z.string(), settings: settingsSchema })
  .meta({ id: 'Organization' });

export function changeOf(body: z.output<typeof settingsBody>): SettingsChange {
  return {
    dropPayloads: body.drop_payloads,
    holidays: body.holidays,
    timeZone: body.time_zone,
    countedScopes: body.counted_scopes,
    chargebackAllocation: body.chargeback_allocation,
  };
}

export function presentSettings(settings: OrganizationSettings): z.output<typeof settingsSchema> {
  return {
    drop_payloads: settings.dropPayloads,
    holidays: [...settings.holidays],
    time_zone: settings.timeZone,
    counted_scopes: settings.countedScopes.map(({ service, scope }) => ({ service, scope })),
    chargeback_allocation: settings.chargebackAllocation,
  };
}

export function presentOrganization(
  orgId: string,
  profile: OrganizationProfile,
): z.output<typeof organizationSchema> {
  return {
    id: publicId('org', orgId),
    name: profile.name,
    created_at: isoFromMicros(profile.createdAtMicros),
    settings: presentSettings(profile.settings),
  };
}
