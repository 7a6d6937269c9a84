import { z } from 'zod';
import { FOCUS_EXPORT_VERSIONS } from '../../../domain/billing/focus/focusCharge.js';
import { monthParameter } from '../../query.js';

export const focusExportQuery = z.object({
  period: monthParameter,
  version: z
    .enum(FOCUS_EXPORT_VERSIONS, { error: `must be ${FOCUS_EXPORT_VERSIONS.join(' or ')}` })
    .default('1.2')
    .meta({ description: 'Version of the FOCUS specification' }),
});
