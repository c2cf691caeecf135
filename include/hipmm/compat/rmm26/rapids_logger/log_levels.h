/* SPDX-License-Identifier: MIT */
/* rapids_logger/log_levels.h: the levels of a log, which are spdlog's. */
#ifndef HIPMM_COMPAT_RAPIDS_LOGGER_LOG_LEVELS_H
#define HIPMM_COMPAT_RAPIDS_LOGGER_LOG_LEVELS_H

#define RAPIDS_LOGGER_LOG_LEVEL_TRACE    0
#define RAPIDS_LOGGER_LOG_LEVEL_DEBUG    1
#define RAPIDS_LOGGER_LOG_LEVEL_INFO     2
#define RAPIDS_LOGGER_LOG_LEVEL_WARN     3
#define RAPIDS_LOGGER_LOG_LEVEL_ERROR    4
#define RAPIDS_LOGGER_LOG_LEVEL_CRITICAL 5
#define RAPIDS_LOGGER_LOG_LEVEL_OFF      6

#endif
