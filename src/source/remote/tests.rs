//! Both stores, faked from their documentation, on a loopback port: what is asked, what is made of the answers.
